"""The weights of past rounds that audits still need: w_r, the state on which round r trained.

Owns: the check of loaded weights. Every settled round is on disk already (`steps/settle.py`), and
stays there while the tracker has an audit or a case of it under way. Never: keeps a copy of its
own, or returns weights with another state root.
Next: `audit/recompute.py`, which computes gradients on them again.
"""

from troth_attestation.state import state_root
from troth_client.state.errors import WeightsLostError
from troth_client.storage import Store, WeightState
from troth_coordinator.rules.ids import Digest


class KeptWeights:
    """The weights in a store, by the root that the chain names."""

    def __init__(self, store: Store, config_hash: Digest) -> None:
        self._store = store
        self._config_hash = config_hash

    def load(self, round_: int, root: bytes) -> WeightState:
        """Return w_r whose state root is `root`, the round's canonical one; slow, for a thread.

        Raises WeightsLostError if it is not on disk or hashes to another root.
        """
        state = self._store.load_weights(round_)
        found = "none on disk" if state is None else self._root_of(state).hex()
        if state is None or found != root.hex():
            raise WeightsLostError(
                f"weights of round {round_} with the root {root.hex()}",
                found,
                "Judge other audits; who cannot recompute says nothing about the work.",
            )
        return state

    def _root_of(self, state: WeightState) -> Digest:
        return state_root(state.tensors, state.round, state.cursor, self._config_hash)
