"""The root from which a run starts, for its creator and for everybody who checks it.

Owns: the way from w_0 to the genesis root. Never: imports torch: machines without it create runs.
Next: `model/init.py` for the weights, `assembly.py`, which checks the root before training.
"""

from collections.abc import Mapping

from troth_attestation.pieces import Float32
from troth_attestation.state import state_root
from troth_client.model.init import initial_weights
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import Digest


def genesis_root(
    run: bytes, config: RunConfig, given: Mapping[str, Float32] | None = None
) -> Digest:
    """Return the state root of w_0 at round 0, cursor 0: what `create_run` stores.

    `run` is the address of the Run account, 32 bytes, from which w_0 is drawn unless it is `given`.
    """
    weights = initial_weights(run, config.model) if given is None else given
    return state_root(weights, 0, 0, config.config_hash())
