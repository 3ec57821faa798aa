"""Honest runs over fp32 and bf16: no conviction, no strike, no penalty, no unproven audit.

The runs are those of scripts/bench/honest.py, which also counts. Next: docs/results.md, where the
long one is told.
"""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/bench/honest.py"
SEED = 20


@pytest.fixture(scope="module")
def honest():
    """The script as a module."""
    found = importlib.util.spec_from_file_location("honest", SCRIPT)
    module = importlib.util.module_from_spec(found)
    sys.modules["honest"] = module
    found.loader.exec_module(module)
    yield module
    del sys.modules["honest"]


@pytest.fixture(scope="module")
def text(honest, tmp_path_factory):
    """A piece of the standard library."""
    return honest.make_data(tmp_path_factory.mktemp("text"))


async def test_nobody_is_hurt_in_a_short_run(honest, text):
    found = await honest.play(honest.settings_of(text, rounds=6), text, members=6, seed=SEED)
    assert found.harm == 0, found.row()
    assert found.participant_rounds == 6 * 6
    assert found.audits >= 6
    assert set(found.verdicts) == {"OK"}
    assert found.verdicts["OK"] == 3 * found.audits
    assert found.across > 0, "somebody was judged in another precision"


@pytest.mark.nightly
async def test_nobody_is_hurt_in_ten_thousand_participant_rounds(honest, text):
    settings, total = honest.settings_of(text, rounds=50), honest.Tally()
    honest.check_bounds(settings, text, trainers=10)
    seed = SEED
    while total.participant_rounds < 10_000:
        seed += 1
        total.add(await honest.play(settings, text, members=10, seed=seed))
        assert total.harm == 0, f"seed {seed}: {total.row()}"
    assert total.across > 1_000
