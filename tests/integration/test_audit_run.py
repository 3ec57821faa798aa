"""An outsider audits runs with faults and cheats from their archives alone: all is in order."""

import pytest
from support.attacks.cheats import play_out, stage, work_cheat
from support.halts import halted_after_progress
from support.recordings import audit_of, record
from support.runs import FIVE, NO_AUDITS, start_members

from troth_audit.replay.report import Verdict


async def test_a_clean_run_passes(run_factory, data, tmp_path):
    run = await run_factory.create(6)
    run.has_blob_folders = True
    await start_members(run, FIVE)
    await run.finish()
    report = audit_of(await record(run, data[0], tmp_path / "archive"))
    assert report.verdict is Verdict.GOOD
    assert report.counts["applied_rounds"] == 6
    assert report.counts["payloads"] == 6 * len(FIVE)


async def test_a_run_whose_cheat_was_convicted_passes(run_factory, data, tmp_path):
    """The cheat lied in its work and not in its header: the protocol dealt with it."""
    run, books = await stage(run_factory, work_cheat("free-rider"), num_lies=2)
    run.has_blob_folders = True
    for one in run.members:
        await run.stop(one)
        await run.start(one)
    await play_out(run)
    report = audit_of(await record(run, data[0], tmp_path / "archive"))
    assert len(books.convictions()) == 2
    assert report.findings == []
    assert report.verdict is Verdict.GOOD


@pytest.mark.long(reason="a run that halts and starts again")
async def test_a_run_that_went_back_to_its_checkpoint_passes(run_factory, data, tmp_path):
    run = await run_factory.create(16, checkpoint_every=4, **NO_AUDITS)
    run.has_blob_folders = True
    halted, members = await halted_after_progress(run)
    for one in members[2:4]:
        await run.start(one)
    await run.finish()
    report = audit_of(await record(run, data[0], tmp_path / "archive"))
    assert halted > 4
    assert report.counts["void_rounds"] == 3
    assert report.findings == []
    assert report.verdict is Verdict.GOOD
