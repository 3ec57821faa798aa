"""The request of `troth join`: the options of the command line, before anybody is asked.

Owns: the record, and the names of roles. Never: checks a value; `join.py` does.
Next: `join.py`, which passes it from step to step.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.workflows.recording import Recording
from troth_client.train.place import Place
from troth_coordinator.chain.priority import PriorityPolicy
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.view import Role

ROLES: Final = {
    "trainer": Role.TRAINER,
    "witness": Role.WITNESS,
    "both": Role.TRAINER | Role.WITNESS,
}


@dataclass(frozen=True, slots=True)
class Training:
    """How gradients are computed: compiled or not, sequences at once (None: as the config says).

    `precision` is auto, fp32 or bf16. `place` is its place among the ranks of its participant, None
    for a process alone.
    """

    compiles: bool = False
    microbatch_sequences: int | None = None
    place: Place | None = None
    precision: str = "auto"


@dataclass(frozen=True, slots=True)
class JoinRequest:
    """The options of the command line, read but not yet checked against the run.

    `program` is the program's address, None for the packaged one's.
    """

    rpc_urls: tuple[str, ...]
    run: Pubkey
    config: RunConfig
    data: Path
    state: Path
    owner: Keypair
    role: str
    device: str
    listen: str
    endpoint: str
    session_lamports: int
    refill_lamports: int
    stake_lamports: int | None
    top_up_lamports: int
    num_threads: int | None
    goes_on_anyway: bool = False
    only_checks: bool = False
    is_agreed: bool = False
    is_plain: bool = False
    hubs: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    allow_private: bool = False
    validate_every: int = 0
    fetches_data: bool = False
    data_from: tuple[str, ...] = ()
    start: Path | None = None
    recording: Recording = field(default_factory=Recording)
    priority: PriorityPolicy = field(default_factory=PriorityPolicy)
    program: Pubkey | None = None
    training: Training = field(default_factory=Training)
    past_bytes: int = 256 * 2**20
    keeps_ledger: bool = True
    archive: Path | None = None
    archive_bytes: int | None = None
    archive_rounds: int | None = None
