"""Members validate on held-out text beside the rounds, and nothing else changes by it."""

import shutil

import pytest
from support.runs import NO_AUDITS, assert_finished, events_of, roots

from troth_client.data.shards import TokenData
from troth_client.model.device import CPU
from troth_client.model.weights import build
from troth_client.participant.validating import MOST_SEQUENCES, HeldOut
from troth_client.train.evaluate import evaluate

ROUNDS = 5


async def validating_run(run_factory, data, **options):
    """A run whose members validate on the held-out shards of a folder; its data if none."""
    folder, manifest = data
    run = await run_factory.create(ROUNDS, **NO_AUDITS)
    held_out = TokenData(options.pop("folder", folder), manifest, "validation")
    run.held_out = HeldOut(held_out, options.pop("every", 4), CPU)
    for name in ("ada", "bob"):
        await run.start(await run.add(name))
    await run.finish()
    return run


async def test_every_four_rounds_the_loss_on_held_out_text_is_measured(run_factory, data):
    run = await validating_run(run_factory, data)
    folder, manifest = data
    validated = events_of(run, "ada", "validated")
    assert [event["round"] for event in validated] == [0, 4]
    assert validated == events_of(run, "bob", "validated"), "equal weights, equal losses"
    held_out = TokenData(folder, manifest, "validation")
    count = min(MOST_SEQUENCES, len(held_out))
    assert {event["tokens"] for event in validated} == {count * manifest.sequence_tokens}
    config = run.settings.config
    saved = run.members[0].here.state.store.load_weights(4)
    model = build(config.model, saved.tensors, CPU.torch)
    assert validated[-1]["loss_micro"] == evaluate(model, held_out.sequences(range(count)), 2)
    assert validated[-1]["loss_micro"] < validated[0]["loss_micro"], "it has learnt"


@pytest.mark.long(reason="two whole runs to compare")
async def test_validation_changes_no_root(run_factory, data):
    with_it = await validating_run(run_factory, data, every=1)
    await assert_finished(with_it)
    assert len(events_of(with_it, "ada", "validated")) >= ROUNDS
    without = await run_factory.start(ROUNDS, names="ada bob", **NO_AUDITS)
    await without.finish()
    assert roots(with_it) == roots(without)


async def test_shards_that_are_missing_or_damaged_end_validation_and_nothing_else(
    run_factory, data, tmp_path
):
    folder, manifest = data
    damaged = tmp_path / "damaged"
    shutil.copytree(folder, damaged)
    shard = damaged / manifest.validation[0].file
    shard.write_bytes(bytes([shard.read_bytes()[0] ^ 1]) + shard.read_bytes()[1:])
    for place in (tmp_path / "nowhere", damaged):
        run = await validating_run(run_factory, data, folder=place, every=2)
        await assert_finished(run)
        assert events_of(run, "ada", "validated") == []
        (skipped,) = events_of(run, "ada", "validation_skipped")
        assert "no validation from now on" in skipped["reason"]
        assert manifest.validation[0].file in skipped["reason"]
