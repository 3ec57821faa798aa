"""Every address that the program derives, one function each.

Owns: the seeds' order and encodings; the words come from the program's exported constants.
Never: asks the chain.
Next: instructions.py, which fills account lists with these.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from solders.pubkey import Pubkey

from troth_coordinator.chain.errors import AccountValueError, ChainError
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.rules.view import RunView

EVENT_AUTHORITY_SEED = b"__event_authority"


def run_address(authority: Pubkey, run_id: bytes, program: Pubkey | None = None) -> Pubkey:
    """Return the Run account of an authority's 32-byte run id. `program`: the packaged one."""
    return _derive("run", [bytes(authority), _sized("run id", run_id, 32)], program)


def roster_address(run: Pubkey, program: Pubkey | None = None) -> Pubkey:
    """Return the Roster account of a run."""
    return _derive("roster", [bytes(run)], program)


def vault_address(run: Pubkey, program: Pubkey | None = None) -> Pubkey:
    """Return the Vault account of a run: lamports, no data."""
    return _derive("vault", [bytes(run)], program)


def participant_address(run: Pubkey, owner: Pubkey, program: Pubkey | None = None) -> Pubkey:
    """Return the Participant account of an owner in a run."""
    return _derive("participant", [bytes(run), bytes(owner)], program)


def round_position_address(run: Pubkey, position: int, program: Pubkey | None = None) -> Pubkey:
    """Return the Round account at a ring position (u16)."""
    return _derive("round", [bytes(run), _little("ring position", position, 2)], program)


def round_address(run: Pubkey, round_: int, ring: int, program: Pubkey | None = None) -> Pubkey:
    """Return the Round account that holds a round: position round mod ring."""
    if ring < 1:
        raise AccountValueError("Params.ring", "at least 1", ring, "ask another RPC node")
    return round_position_address(run, round_ % ring, program)


def checkpoint_address(run: Pubkey, round_: int, program: Pubkey | None = None) -> Pubkey:
    """Return the Checkpoint account of a round (u64)."""
    return _derive("checkpoint", [bytes(run), _little("round", round_, 8)], program)


def audit_address(
    run: Pubkey, round_: int, target: int, kind: int, program: Pubkey | None = None
) -> Pubkey:
    """Return the Audit account of a target (u16) in a round (u64), by kind (u8)."""
    parts = [_little("round", round_, 8), _little("target", target, 2), _little("kind", kind, 1)]
    return _derive("audit", [bytes(run), *parts], program)


def event_authority_address(program: Pubkey | None = None) -> Pubkey:
    """Return the address that signs the program's event calls; Anchor fixes its seed."""
    return _find((EVENT_AUTHORITY_SEED,), _program(program))


@dataclass(frozen=True, slots=True)
class RunAddresses:
    """The addresses of one run: what an instruction needs to know of where it acts.

    ring: positions of the round ring, from the run's parameters. program: whose accounts.
    """

    run: Pubkey
    ring: int
    program: Pubkey

    @classmethod
    def of(cls, view: RunView, program: Pubkey | None = None) -> Self:
        """Take them from a run as read from the chain."""
        return cls(Pubkey.from_bytes(view.address), view.params.ring, _program(program))

    @classmethod
    def create(
        cls, authority: Pubkey, run_id: bytes, ring: int, program: Pubkey | None = None
    ) -> Self:
        """Derive those of a run that may not exist yet."""
        return cls(run_address(authority, run_id, program), ring, _program(program))

    @property
    def roster(self) -> Pubkey:
        """The Roster account."""
        return roster_address(self.run, self.program)

    @property
    def vault(self) -> Pubkey:
        """The Vault account."""
        return vault_address(self.run, self.program)

    def round(self, round_: int) -> Pubkey:
        """Return the ring account of a round."""
        return round_address(self.run, round_, self.ring, self.program)

    def position(self, position: int) -> Pubkey:
        """Return the ring account at a position."""
        return round_position_address(self.run, position, self.program)

    def participant(self, owner: Pubkey) -> Pubkey:
        """Return the Participant account of an owner."""
        return participant_address(self.run, owner, self.program)

    def checkpoint(self, round_: int) -> Pubkey:
        """Return the Checkpoint account of a round."""
        return checkpoint_address(self.run, round_, self.program)

    def audit(self, round_: int, target: int, kind: int = 0) -> Pubkey:
        """Return the Audit account of a target in a round; kind 0 is work."""
        return audit_address(self.run, round_, target, kind, self.program)


def _program(program: Pubkey | None) -> Pubkey:
    return program_layout().program_id if program is None else program


def _derive(seed: str, parts: list[bytes], program: Pubkey | None) -> Pubkey:
    word = program_layout().seeds[seed]
    return _find((word, *parts), _program(program))


@lru_cache(maxsize=4096)
def _find(seeds: tuple[bytes, ...], program: Pubkey) -> Pubkey:
    """Search the bump: 20 microseconds, and the same few addresses are asked for every slot."""
    address, _bump = Pubkey.find_program_address(list(seeds), program)
    return address


def _little(name: str, value: int, num_bytes: int) -> bytes:
    if not 0 <= value < 1 << 8 * num_bytes:
        raise ChainError(name, f"0 to 2^{8 * num_bytes} - 1", value, "pass the number on chain")
    return value.to_bytes(num_bytes, "little")


def _sized(name: str, value: bytes, num_bytes: int) -> bytes:
    if len(value) != num_bytes:
        raise ChainError(name, f"{num_bytes} bytes", f"{len(value)} bytes", "pass all of them")
    return value
