"""The settings of one participant as a process.

Owns: their names and defaults. Never: imports what a participant needs to work, so that a parent
can make them and hand them to a child at once. Next: `process.py`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from troth_coordinator.chain.priority import PriorityPolicy
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.view import Role

WEIGHTS: Final = "weights"
"""The folder, in that of the state, with the weights of a finished run."""


@dataclass(frozen=True, slots=True)
class ParticipantSettings:
    """The settings of `troth join`. All are picklable, so that a fleet can hand them to a child.

    `rpc_urls` are addresses of RPC nodes, the preferred one first. `program` is the address of the
    program, "" for the packaged one's.
    `owner` and `session` are 64-byte key pairs. `endpoint` is the address for others; "" means the
    address that we listen on. Host "" listens nowhere: every connection is outbound, and the
    participant announces no endpoint. Port 0 is any free port at join, and the announced port
    later.
    `start` is a folder with the weights from which the run starts; without, a run that was created
    from given weights gets them from others.
    `state` is the folder of this participant. Unless it `is_durable`, the operating system writes
    its files when it likes: they outlive a kill, but no power cut.
    `session_lamports` are moved to the session key at join, to pay for its transactions; one
    process moves up to `refill_lamports` more later.
    `stake_lamports` is the deposit at join, 0 for the least one. Without `may_deposit` it only goes
    on where an earlier join has a place. Where a fine takes the stake below
    what this participant must keep, one process adds up to `top_up_lamports` in all.
    `priority` says how much may be paid to land sooner.
    `hubs` and `stores` are asked and served beside those of the config. On a public cluster
    only public addresses are connected to, unless `allow_private`.
    `validate_every` rounds the loss on held-out text is measured, if it is here; 0 for never.
    `num_threads` bounds PyTorch, NumPy and hashing; None leaves the number to them.
    `compiles` runs forward and backward pass as compiled kernels. `microbatch_sequences` are
    computed at once, save in a juror's reference mode; None for the number in the config.
    `precision` is auto, fp32 or bf16.
    `past_bytes` of past weights, and as many of past residuals, stay in memory; the disk has all of
    them. `ledger` is the file that takes the events of the run; None for none.
    `archive` is a folder for all that an audit of the run needs; None keeps no archive. Its ledger
    takes the place of `ledger`. It has at most `archive_bytes`, and payloads and opened tiles
    of the newest `archive_rounds` rounds; None for no bound.
    """

    rpc_urls: tuple[str, ...]
    run: str
    config: RunConfig
    data: Path
    state: Path
    owner: bytes
    session: bytes
    role: Role = Role.TRAINER | Role.WITNESS
    host: str = "127.0.0.1"
    port: int = 0
    endpoint: str = ""
    device: str = "auto"
    precision: str = "auto"
    poll_seconds: float = 0.4
    session_lamports: int = 250_000_000
    refill_lamports: int = 500_000_000
    stake_lamports: int = 0
    top_up_lamports: int = 0
    priority: PriorityPolicy = field(default_factory=PriorityPolicy)
    num_threads: int | None = None
    hubs: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    allow_private: bool = False
    program: str = ""
    validate_every: int = 0
    start: Path | None = None
    compiles: bool = False
    microbatch_sequences: int | None = None
    past_bytes: int = 256 * 2**20
    ledger: Path | None = None
    archive: Path | None = None
    archive_bytes: int | None = None
    archive_rounds: int | None = None
    is_durable: bool = True
    may_deposit: bool = True
