"""A juror that votes for something else than its finding.

Owns: telling a jury from a seat. Never: computes another gradient; a juror is paid only if its
sketch is that of the others. Next: `troth_client.audit.witness` for the port; `votes.py`.
"""

import weakref

from numpy import int64
from numpy.typing import NDArray

from troth_attestation.measure import Own
from troth_attestation.pieces import Float32
from troth_attestation.verdict import Verdict
from troth_client.audit.judgement import Evidence
from troth_client.audit.recompute import Weights
from troth_client.audit.witness import HonestWitnessWork
from troth_simulation.cheats.conduct import Conduct


class CheatingJuror:
    """The work of a witness that judges honestly from a seat, and votes as it likes on a jury."""

    def __init__(self, honest: HonestWitnessWork, conduct: Conduct) -> None:
        self._honest = honest
        self._conduct = conduct
        self._as_juror: list[weakref.ref[Float32]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._honest, name)

    def reference_gradient(self, weights: Weights, batch: NDArray[int64]) -> Float32:
        """Recompute in reference mode, which only jurors do, and remember the result."""
        found = self._honest.reference_gradient(weights, batch)
        living = [one for one in self._as_juror if one() is not None]
        self._as_juror = [*living, weakref.ref(found)]
        return found

    def judge(self, evidence: Evidence, own: Own) -> Verdict:
        """Return the finding; on a jury, the vote in its place."""
        found, conduct = self._honest.judge(evidence, own), self._conduct
        is_juror = own.tiles is not None and any(one() is own.tiles for one in self._as_juror)
        if not is_juror or not conduct.begin():
            return found
        conduct.note(evidence.header.round)
        return conduct.cheat.vote(found)
