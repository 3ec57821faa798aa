"""The settings of one participant as a process.

Owns: their names and defaults. Never: imports what a participant needs to work, so that a parent
can make them and hand them to a child at once. Next: `process.py`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from troth_coordinator.chain.priority import PriorityPolicy
from troth_coordinator.rules.view import Role

if TYPE_CHECKING:  # the command line takes its defaults from here, also for --help
    from troth_coordinator.rules.config import RunConfig

WEIGHTS: Final = "weights"
"""The folder, in that of the state, with the weights of a finished run."""
SESSION_LAMPORTS: Final = 250_000_000
REFILL_LAMPORTS: Final = 500_000_000
PAST_BYTES: Final = 256 * 2**20


@dataclass(frozen=True, slots=True)
class ParticipantSettings:
    """The settings of `troth join`. All are picklable, so that a fleet can hand them to a child."""

    rpc_urls: tuple[str, ...]
    """Addresses of RPC nodes, the preferred one first."""
    run: str
    config: "RunConfig"
    data: Path
    state: Path
    """The folder of this participant."""
    owner: bytes
    """A 64-byte key pair."""
    session: bytes
    """A 64-byte key pair; empty before `troth join` has looked into the state folder."""
    role: Role = Role.TRAINER | Role.WITNESS
    host: str = "127.0.0.1"
    """Host "" listens nowhere: all connections are outbound, and no endpoint is announced."""
    port: int = 0
    """Port 0 is any free port at join, and the announced port later."""
    endpoint: str = ""
    """The address for others; "" means the address that we listen on."""
    device: str = "auto"
    precision: str = "auto"
    """That of gradients: auto, fp32 or bf16."""
    poll_seconds: float = 0.4
    session_lamports: int = SESSION_LAMPORTS
    """Moved to the session key at join, to pay for its transactions."""
    refill_lamports: int = REFILL_LAMPORTS
    """One process moves up to so much more later."""
    stake_lamports: int | None = None
    """The deposit at join, None for the least one."""
    top_up_lamports: int = 0
    """One process adds up to so much where a fine takes the stake below what we must keep."""
    priority: PriorityPolicy = field(default_factory=PriorityPolicy)
    """How much may be paid to land sooner."""
    num_threads: int | None = None
    """Bounds PyTorch, NumPy and hashing; None leaves the number to them."""
    hubs: tuple[str, ...] = ()
    """They and `stores` are asked and served beside those of the config."""
    stores: tuple[str, ...] = ()
    allow_private: bool = False
    """Without, only public addresses are connected to on a public cluster."""
    program: str = ""
    """The address of the program, "" for the packaged one's."""
    validate_every: int = 0
    """Rounds between two losses on held-out text, if it is here; 0 for never."""
    start: Path | None = None
    """A folder with the weights from which the run starts; else they are got from others."""
    compiles: bool = False
    """Run forward and backward pass as compiled kernels."""
    microbatch_sequences: int | None = None
    """Computed at once, save in a juror's reference mode; None for the config's number."""
    past_bytes: int = PAST_BYTES
    """So much of past weights, and of past residuals, stays in memory; the disk has all of them."""
    ledger: Path | None = None
    """The file that takes the events of the run; None for none."""
    archive: Path | None = None
    """A folder for all that an audit of the run needs, with a ledger in place of `ledger`."""
    archive_bytes: int | None = None
    """The most bytes of the archive; None for no bound."""
    archive_rounds: int | None = None
    """It keeps payloads and opened tiles of so many newest rounds; None for no bound."""
    is_durable: bool = True
    """Without, the system writes files when it likes: they outlive a kill, but no power cut."""
    may_deposit: bool = True
    """Without, it only goes on where an earlier join has a place."""
