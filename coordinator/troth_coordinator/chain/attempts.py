"""One send under way: every signature it has, its tries, and who follows it.

Owns: the records of a send. Never: asks a node; sender.py does.
Next: sender.py; priority.py for what a level is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.errors import RpcError
from troth_coordinator.chain.priority import level_of
from troth_coordinator.chain.transactions import SignedTransaction


@dataclass(frozen=True, slots=True)
class SendState:
    """How a send that takes long stands: bytes handed over, blockhashes used, seconds waited.

    reason: the last word of the nodes, "" while they only do not show it.
    """

    num_tries: int
    num_blockhashes: int
    seconds: float
    reason: str


class SendWatch(Protocol):
    """The follower of a send. `is_due`: False once nothing is won if it lands.

    `window_left`: thousandths of the time in which it must land, None where there is no such time.
    With one it is signed anew for a higher price: a second landing must change nothing.
    `wants_record`: the follower needs the events of the transaction, or its units.
    """

    @property
    def wants_record(self) -> bool:
        """Asked once it has landed."""
        ...

    @property
    def window_left(self) -> int | None:
        """Asked before each signature, to price it."""
        ...

    @property
    def is_due(self) -> bool:
        """Asked before the bytes are repeated or signed anew."""
        ...

    def may_sign(self) -> bool:
        """Asked right before each signature; where it is False, the send ends as expired."""
        ...

    def waiting(self, state: SendState) -> None:
        """Learn that the send is not confirmed yet, at each repetition."""


class Alone:
    """Nobody follows the send: it goes on until it is known."""

    is_due = True
    window_left = None
    wants_record = True

    def may_sign(self) -> bool:
        """Let it be signed as often as the sender wants."""
        return True

    def waiting(self, state: SendState) -> None:
        """Tell nobody."""


class Once(Alone):
    """Lets a send be signed once. Its bytes may be repeated: the chain takes a signature once.

    For what pays again when it lands again. That a first signature has landed, a node may hide.
    """

    def __init__(self) -> None:
        self.is_signed = False

    def may_sign(self) -> bool:
        """Let it be signed, unless it was."""
        is_first, self.is_signed = not self.is_signed, True
        return is_first


@dataclass(slots=True)
class Attempts:
    """The transaction being sent and every signature it has been sent under.

    held: lamports set aside for the priority of each signature that may still land. is_behind: the
    node took nothing, for it lags. num_unknown: how often it did not know the newest blockhash.
    """

    instructions: Sequence[Instruction]
    signers: Sequence[Keypair]
    spare_units: int
    watch: SendWatch
    signatures: list[Signature] = field(default_factory=list)
    held: dict[Signature, int] = field(default_factory=dict)
    price: int = 0
    level: int = 0
    signed_at: int = 0
    num_tries: int = 0
    num_polls: int = 0
    num_blockhashes: int = 0
    num_unknown: int = 0
    is_behind: bool = False
    is_sent: bool = False
    is_refused: bool = False
    last_error: RpcError | None = None
    latest: SignedTransaction | None = None

    @property
    def signed(self) -> SignedTransaction:
        """The newest signed transaction; only after the first."""
        if self.latest is None:
            raise RuntimeError("nothing was signed yet")
        return self.latest

    @property
    def urgency(self) -> int:
        """How little time is left, as a level of priority.py."""
        return level_of(self.watch.window_left, is_tried=self.num_tries > 0)

    @property
    def payer(self) -> Pubkey:
        """The key that pays."""
        return self.signers[0].pubkey()
