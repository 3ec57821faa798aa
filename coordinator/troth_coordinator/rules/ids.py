"""Names for the numbers and keys that must not be mixed up.

Owns: the `NewType`s of the project and the protocol's markers for "none".
Never: checks values; the encoders of `hashing.py` do that.
Next: `view.py`, which uses them in every record.
"""

from typing import Final, NewType

RunId = NewType("RunId", bytes)
"""The 32 bytes chosen at creation; with the program id they give the run's address."""

Address = NewType("Address", bytes)
"""32 bytes of an account address or public key."""

Digest = NewType("Digest", bytes)
"""32 bytes of SHA-256 output."""

Slot = NewType("Slot", int)
"""A slot number of the chain: the only clock of the protocol."""

Lamports = NewType("Lamports", int)
"""An amount of money; 10^9 lamports are one SOL."""

RoundIndex = NewType("RoundIndex", int)
"""The number of a round, counted from 0 over the whole run, never reused."""

ParticipantIndex = NewType("ParticipantIndex", int)
"""The position of a participant in the roster, 0..63."""

Bitmap = NewType("Bitmap", int)
"""64 bits, bit i for participant index i."""

NONE: Final = 2**64 - 1
"""Marks "no round" and "no slot" in every u64 field of the protocol."""

NO_INDEX: Final = 65_535
"""Marks "nobody" in every field that holds an index."""

MAX_PARTICIPANTS: Final = 64
"""Entries of the roster and slots of a round account."""

MAX_TICKETS: Final = 4
"""Tickets of stake on its way out that an owner may hold at once; leaving takes one."""

NOBODY: Final = Bitmap(0)
"""The empty set of participants."""

ZERO_DIGEST: Final = Digest(bytes(32))
"""32 zero bytes: no root, no key, no header."""
