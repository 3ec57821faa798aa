"""A participant as a judge: its evidence, its own gradient, and the judge.

Owns: the composition, and the port for the computations of a witness. Never: decides when to judge.
Next: `audit_round.py` for the order of an audit; `recompute.py` for the gradient.

Dishonest witnesses in tests implement the same port.
"""

from dataclasses import dataclass
from typing import Protocol

from numpy import int64
from numpy.typing import NDArray

from troth_attestation.measure import Own, Tiles
from troth_attestation.pieces import Float32
from troth_attestation.sketch import Sketch, sketch
from troth_attestation.verdict import Verdict
from troth_client.audit.judgement import Evidence, judge_work
from troth_client.audit.recompute import Weights, own_gradient, recompute_reference
from troth_client.model.device import CPU, Device
from troth_client.network.chain import RunChain
from troth_client.network.submissions import Submissions
from troth_client.state.audit_state import AuditState
from troth_client.state.round_state import RoundState
from troth_client.state.verdict_store import Duty, KeptStatement
from troth_coordinator.rules.audit_view import AuditView, SeatFlag
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest


class WitnessWork(Protocol):
    """The computations of a witness; each is heavy, so it is called in a thread."""

    def gradient(self, weights: Weights, batch: NDArray[int64]) -> Tiles:
        """Return our own D(g), fp32 [tiles, 64, 64], of a batch, int64 [sequences, T + 1].

        It stays on its device. Raises NonFiniteGradientError, as the two methods below.
        """
        ...

    def reference_gradient(self, weights: Weights, batch: NDArray[int64]) -> Tiles:
        """Return D(g) in reference mode, as a juror compares it."""
        ...

    def second_gradient(
        self, weights: Weights, batch: NDArray[int64], *, in_reference: bool
    ) -> Tiles:
        """Return D(g) in the other precision: of our device, or of reference mode."""
        ...

    def judge(self, evidence: Evidence, own: Own) -> Verdict:
        """Return the verdict on a payload whose tiles were opened."""
        ...

    def sketch(self, gradient: Tiles, seed: Digest, target: int) -> Sketch:
        """Return the proof that we computed a gradient."""
        ...


@dataclass(frozen=True, slots=True)
class HonestWitnessWork:
    """Recompute as trainers do, and return what the judge finds."""

    config: RunConfig
    device: Device

    def gradient(self, weights: Weights, batch: NDArray[int64]) -> Tiles:
        """Recompute on our device, in our precision and microbatch."""
        return own_gradient(self.config, weights, batch, self.device)

    def reference_gradient(self, weights: Weights, batch: NDArray[int64]) -> Float32:
        """Recompute in fp32 on one thread of the processor, in the config's microbatch."""
        return recompute_reference(self.config, weights, batch)

    def second_gradient(
        self, weights: Weights, batch: NDArray[int64], *, in_reference: bool
    ) -> Tiles:
        """Recompute in bf16 what was in fp32, and the other way; jurors on all threads."""
        device = CPU if in_reference else self.device
        return own_gradient(self.config, weights, batch, device.other_precision())

    def judge(self, evidence: Evidence, own: Own) -> Verdict:
        """Ask the judge."""
        return judge_work(evidence, own, self.config)

    def sketch(self, gradient: Tiles, seed: Digest, target: int) -> Sketch:
        """Sketch the gradient with the keys of this audit."""
        return sketch(gradient, seed, target)


@dataclass(frozen=True, slots=True)
class Witness:
    """A participant as a judge of others."""

    chain: RunChain
    submissions: Submissions
    audits: AuditState
    work: WitnessWork

    @property
    def state(self) -> RoundState:
        """The round state: weights, data and store."""
        return self.submissions.state


class Speaker(Protocol):
    """Anybody who may owe verdicts and votes; no weights are needed to show those on disk."""

    @property
    def chain(self) -> RunChain:
        """The chain, under its own identity."""
        ...

    @property
    def audits(self) -> AuditState:
        """Its verdicts and votes, and what it knows of the audits."""
        ...


def recall(witness: Speaker, audit: AuditView, *, is_juror: bool = False) -> KeptStatement | None:
    """Return the statement that we have stored for an audit, if any.

    A statement about other openings, without a commit of ours on this chain, is left from a fork
    that drew another seed, or the RPC node lags. It is passed over, and kept.
    """
    verdicts, duty = witness.audits.verdicts, Duty(audit.round, audit.target, audit.kind, is_juror)
    found = verdicts.find(duty)
    if found is None or found.evidence == audit.openings_root:
        return found
    return found if has_committed(witness, audit, is_juror=is_juror) else None


def has_committed(witness: Speaker, audit: AuditView, *, is_juror: bool = False) -> bool:
    """Tell whether the chain has a commit of ours in this audit."""
    places = audit.jurors if is_juror else audit.seats
    own = [place for place in places if place.index == witness.chain.index]
    return any(place.flags & SeatFlag.COMMITTED for place in own)
