"""Honest runs over fp32 and bf16: no conviction, no strike, no penalty, no unproven audit.

The runs are those of scripts/bench/honest.py, which also counts. Next: docs/results.md, where the
long one is told.
"""

import honest
import pytest

SEED = 20


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A piece of the standard library."""
    return honest.make_data(tmp_path_factory.mktemp("text"))


@pytest.mark.long(reason="six members who audit each other for six rounds")
async def test_nobody_is_hurt_in_a_short_run(text):
    found = await honest.play(honest.settings_of(text, members=6, rounds=6), text, SEED)
    assert found.harm == 0, found.row()
    assert found.participant_rounds == 6 * 6
    assert found.audits >= 6
    assert set(found.verdicts) == {"OK"}
    assert found.verdicts["OK"] == 3 * found.audits
    assert found.across > 0, "somebody was judged in another precision"


@pytest.mark.nightly(reason="ten thousand payloads are the claim")
async def test_nobody_is_hurt_in_ten_thousand_participant_rounds(text):
    settings, total = honest.settings_of(text, members=10, rounds=50), honest.Tally()
    honest.check_bounds(settings, text)
    seed = SEED
    while total.participant_rounds < 10_000:
        seed += 1
        total.add(await honest.play(settings, text, seed))
        assert total.harm == 0, f"seed {seed}: {total.row()}"
    assert total.across > 1_000
