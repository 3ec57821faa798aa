"""The records that a round hands from step to step: each is made once and never changed.

Owns: their fields. Never: behaviour. In order of appearance: RoundPlan, the Gradient of
`train/step.py`, the Submission of `storage/entries.py`, Published, Held, Closure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from troth_attestation.header import Header
from troth_client.compression.codec import VerifiedPayload
from troth_client.storage.entries import Submission
from troth_client.telemetry.losses import RoundLoss
from troth_coordinator.rules.ids import Bitmap, Digest, RoundIndex
from troth_coordinator.rules.view import RoundView


@dataclass(frozen=True, slots=True)
class OwnRoot:
    """The state root of our weights, and the round that trains on them."""

    round: RoundIndex
    root: Digest


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """The duties of one participant in one round, as the chain states them.

    `sequences` are the ids to train on, in order; empty unless it is a trainer of this round.
    `previous_included` is the round whose residual its header may carry on (NONE: start at zero).
    """

    round: RoundIndex
    epoch: int
    cursor: int
    is_member: bool
    is_trainer: bool
    is_commit_open: bool
    sequences: tuple[int, ...]
    previous_included: RoundIndex


@dataclass(frozen=True, slots=True)
class Published:
    """A round whose commitments no longer change, and the holders to offer our payload to.

    `holders` are members' addresses in the order in which to offer it. `is_ours` is False, and
    `holders` empty, if we committed nothing.
    """

    round: RoundView
    holders: tuple[str, ...]
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """A trainer's submission whose header has the committed hash and whose payload has its root.

    `decoded` is None where the payload fails section 5.4: it can be held and applied (as nothing),
    but not vouched for.
    """

    submission: Submission
    header: Header
    decoded: VerifiedPayload | None


@dataclass(frozen=True, slots=True)
class Closure:
    """How a round ended on chain: the only thing that decides which payloads are applied.

    `own_residual` is the residual root that our own included header names for after the round;
    None if our payload was not included. `carried` are the rounds whose residuals the trainers may
    carry on. `loss` is that of the included headers that we hold: telemetry.
    """

    round: RoundIndex
    num_trainers: int
    included: Bitmap
    is_void: bool
    canonical_root: Digest
    own_residual: Digest | None = field(default=None, compare=False)
    carried: frozenset[int] = field(default=frozenset(), compare=False)
    loss: RoundLoss = field(default=RoundLoss(), compare=False)


Payloads = Sequence[VerifiedPayload | None]
"""One entry per included payload in index order; None for one that fails section 5.4."""
