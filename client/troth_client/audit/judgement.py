"""From the pieces of one audit to a verdict.

Owns: handing them to the judge. Never: judges (`troth_attestation` does), fetches, recomputes, or
sends.
Next: `state/verdict_store.py`, which keeps the verdict until it may be revealed.
"""

from dataclasses import dataclass

from troth_attestation import cases
from troth_attestation.header import Header
from troth_attestation.measure import JudgeRule, Own
from troth_attestation.signs import Signs
from troth_attestation.verdict import Verdict
from troth_attestation.work import judge
from troth_client.audit.drawn import sampled_payload
from troth_client.compression import codec
from troth_client.compression.errors import MalformedPayloadError
from troth_client.compression.limits import payload_length
from troth_client.compression.tiles import TileLayout
from troth_client.model.shapes import trainable_shapes
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest


@dataclass(frozen=True, slots=True)
class Evidence:
    """One payload with all that a judge needs.

    `sigma`: seed of the round's audits. `header`: the committed header. `payload`: the included
    bytes. `openings`: bytes served for `openings_root`; None where the work is not judged.
    """

    sigma: Digest
    header: Header
    payload: bytes
    openings: bytes | None
    openings_root: bytes


def judge_work(evidence: Evidence, own: Own, config: RunConfig) -> Verdict:
    """Judge a sampled payload against one's own D(g).

    Raises TensorError if that is of another model: then the judge itself is at fault.
    """
    layout = TileLayout.from_shapes(trainable_shapes(config.model))
    num_tiles = layout.num_tiles
    count = config.judge.openings_tiles
    return judge(
        evidence.openings,
        sampled_payload(evidence.sigma, evidence.header, num_tiles, count),
        evidence.openings_root,
        _signs(evidence.payload, num_tiles, config),
        own,
        JudgeRule(config.demo, config.judge, layout.tensor_tiles),
    )


def judge_payload(
    header: Header | None, payload: bytes | None, num_tiles: int, config: RunConfig
) -> Verdict:
    """Judge a payload case: decode the bytes as strictly as everybody who applied them."""
    malformed = None
    try:
        codec.decode(payload or b"", num_tiles, config.demo.k)
    except MalformedPayloadError as error:
        malformed = str(error)
    length = payload_length(num_tiles, config.demo.k)
    return cases.judge_payload(header, payload, length, malformed)


def _signs(payload: bytes, num_tiles: int, config: RunConfig) -> Signs | None:
    try:
        return codec.decode(payload, num_tiles, config.demo.k).signs
    except MalformedPayloadError:
        return None
