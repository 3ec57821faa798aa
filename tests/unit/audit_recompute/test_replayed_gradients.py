"""An auditor whose run has data of no use says so, and goes on."""

from pathlib import Path

import pytest
from support.ports import Wrapped
from support.run_files import make_run
from support.trainers import CONFIG, IDS, TOKENS, weights

from troth_client.audit.replayed import ReplayedGradients
from troth_client.data.errors import PieceMissingError, ShardTokenError
from troth_client.data.shards import TokenData

ERRORS = {
    "token": (
        ShardTokenError(Path("train-00000.bin"), "tokens below 256", "token 300"),
        "tokens that the model can take",
    ),
    "missing": (PieceMissingError("piece 0", "none", ""), "the tokens of its sequences"),
}


class Replayed:
    """Weights of a replay that stand at round 0."""

    def arrays(self):
        return weights()


@pytest.mark.parametrize("kind", list(ERRORS))
def test_tokens_of_no_use_are_said_and_end_no_audit(kind):
    error, found = ERRORS[kind]

    def refuse(_ids):
        raise error

    gradients = ReplayedGradients(CONFIG, Replayed(), Wrapped(TOKENS, sequences=refuse))
    assert gradients.own(IDS) == found


def test_a_batch_that_the_model_cannot_take_is_said():
    tokens = TOKENS.sequences(IDS)
    tokens[0, 0] = CONFIG.model.vocab_size
    data = Wrapped(TOKENS, sequences=lambda _ids: tokens)
    gradients = ReplayedGradients(CONFIG, Replayed(), data)
    assert gradients.own(IDS) == "tokens that the model can take"


@pytest.mark.parametrize("change", ["missing", "damaged"])
def test_a_shard_that_is_of_no_use_is_named_and_ends_no_audit(change, tmp_path):
    """With --data the tokens lie in a folder, from which a file may be gone."""
    run = make_run(tmp_path / "data")
    shard = tmp_path / "data" / run.manifest.train[0].file
    if change == "missing":
        shard.unlink()
    else:
        shard.write_bytes(bytes(shard.stat().st_size))
    gradients = ReplayedGradients(CONFIG, Replayed(), TokenData(shard.parent, run.manifest))
    assert str(shard) in gradients.own([0])
