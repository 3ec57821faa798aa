"""A verdict: the answer of a seat about a sampled payload, its reason and its hash (section 7).

Owns: the four kinds, the reasons in words, the hash that hides a verdict until its reveal.
Never: measures anything.
Next: `work.py`, which makes verdicts, and `panel.py`, which counts them.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum

from troth_coordinator.rules.hashing import H, b32, u8, u16, u64
from troth_coordinator.rules.ids import Digest


class VerdictKind(IntEnum):
    """The byte of a verdict on chain; 0 stands for none."""

    OK = 1
    MISMATCH = 2
    UNAVAILABLE = 3
    INCONCLUSIVE = 4


class Reason(Enum):
    """The reason of a verdict: a code for programs, and a sentence for people."""

    WORK_MATCHES = "the shown work agrees with the recomputed gradient"
    NOT_SERVED = "nobody served the opened tiles in time"
    OPENINGS_FIELD = "the opened tiles are of another run, round, participant or model"
    OPENINGS_LENGTH = "the opened tiles are truncated or extended"
    OPENINGS_TILE = "other tiles were opened than those that were drawn"
    OPENINGS_PATH = "the opened tiles are not under the signed residual roots"
    OPENINGS_ROOT = "the opened tiles are not those recorded on chain"
    NOT_FINITE = "the committed residual holds NaN or infinite values"
    PAYLOAD_MALFORMED = "the included payload cannot be decoded"
    PAYLOAD_NOT_TOP_K = "the payload is not the top-k and signs of the committed residual"
    RESIDUAL_TOO_LARGE = "the residual is too large to come from honest gradients"
    RESIDUAL_UNUSUAL = "the residual is larger than honest gradients leave as a rule"
    RESIDUAL_OF_TILES = "the residual of single tiles is too large to come from honest gradients"
    VOTES_WITHOUT_GRADIENT = "tiles were sent that have no gradient"
    TILES_FORGED = "single tiles show work that is not the gradient of the assigned sequences"
    VOTES_DISAGREE = "the votes of a part of the model are not on the side of its gradient"
    OWN_NOT_FINITE = "the judge's own gradient is not finite"
    WORK_DIFFERS = "the shown work is not the gradient of the assigned sequences"
    SKETCH_IS_ZERO = "the sketch of our own gradient is all zeros: too small to prove work"
    ZERO_GRADIENT = "the recomputed gradient is zero on all opened tiles"
    BETWEEN_BOUNDS = "the difference lies between the two bounds"
    EVIDENCE_MISSING = "what decides the case could not be fetched or replayed"
    PAYLOAD_WELL_FORMED = "the included payload is canonical"
    ROOT_IS_REPLAYED = "the root vote is that of the replayed weights"
    ROOT_IS_FALSE = "the root vote is not that of the replayed weights"
    POSSESSION_HOLDS = "the byte of possession is that of the payload"
    POSSESSION_IS_FALSE = "the byte of possession is not that of the payload"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The finding of one judge with its numbers; None for tests that it did not reach.

    `median_error` and `num_bad_tiles` are of the gradient over the drawn tiles, `residual_ratio`
    is of the residual. `tile` is the first tile where payload and openings differ. `detail` quotes
    an error about the openings.
    """

    kind: VerdictKind
    reason: Reason
    median_error: float | None = None
    num_bad_tiles: int | None = None
    residual_ratio: float | None = None
    tile: int | None = None
    detail: str = ""

    def explain(self) -> str:
        """Return one line for a person: kind, reason, numbers."""
        numbers = [
            f"median error {self.median_error:.4f}" if self.median_error is not None else "",
            f"{self.num_bad_tiles} tiles far off" if self.num_bad_tiles is not None else "",
            f"residual {self.residual_ratio:.2f} x gradient"
            if self.residual_ratio is not None
            else "",
            f"tile {self.tile}" if self.tile is not None else "",
            self.detail,
        ]
        behind = ", ".join(number for number in numbers if number)
        return f"{self.kind.name.lower()}: {self.reason.value}" + (f" ({behind})" if behind else "")


@dataclass(frozen=True, slots=True)
class Statement:
    """The statement that a seat commits to: judge, target, verdict, evidence, sketch.

    `evidence` is the openings root, zeros without openings; `sketch_hash` is made by `sketch.py`.
    """

    run: bytes
    round: int
    target: int
    witness: int
    kind: VerdictKind
    evidence: bytes
    sketch_hash: bytes

    def commit(self, salt: bytes) -> Digest:
        """Return H("troth:verdict", run, round, target, witness, verdict, evidence, sketch, salt).

        Indices are u16, the verdict u8, the salt 32 random bytes that hide the verdict. Raises
        RangeError for a field that does not fit.
        """
        return H(
            "troth:verdict",
            b32(self.run, "run"),
            u64(self.round),
            u16(self.target),
            u16(self.witness),
            u8(self.kind),
            b32(self.evidence, "evidence root"),
            b32(self.sketch_hash, "sketch hash"),
            b32(salt, "salt"),
        )
