"""An outsider audits recorded runs from their archives alone."""

from support.recordings import audit_of, record
from support.runs import FIVE, start_members

from troth_audit.replay.report import Verdict


async def test_a_clean_run_passes(run_factory, data, tmp_path):
    run = await run_factory.create(6)
    run.has_blob_folders = True
    await start_members(run, FIVE)
    await run.finish()
    folder = await record(run, data[0], tmp_path / "archive")
    report = audit_of(folder)
    assert report.verdict is Verdict.GOOD
