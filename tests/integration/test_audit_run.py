"""An outsider audits runs with faults and cheats from their archives alone: all is in order."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from solders.pubkey import Pubkey
from support.attacks.cheats import Loss, play_out, stage, work_cheat
from support.attacks.judges import JUDGED, SIX, accuse, until_event
from support.fields import assert_fields
from support.forgeries import lines, rewrite
from support.halts import halted_after_progress
from support.ports import LIAR, LIE_ROUND, vouch_for_everything, withhold
from support.recordings import PLAN, audit_of, record
from support.runs import FIVE, NO_AUDITS, Chronicle, member, start_members, until_round

from troth_attestation import header as headers
from troth_attestation.header import HEADER_BYTES
from troth_audit.replay.findings import Grade, Rule
from troth_audit.replay.report import Conclusion
from troth_cli.plot.audit import page_data
from troth_cli.plot.data import RoundRow, Slash, StakeLine
from troth_cli.workflows.audit import audit
from troth_cli.workflows.audit_inputs import Asked, gather
from troth_client.steps import attest as attest_step
from troth_coordinator.chain.event_types_audits import CaseSettled
from troth_coordinator.chain.event_types_rounds import RoundClosed
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.view import EntryView, RoundFlag, Status


@pytest.mark.long(reason="make test audits a run in which a cheat is convicted")
async def test_a_clean_run_passes(run_factory, data, tmp_path):
    run = await run_factory.create(6)
    run.has_blob_folders = True
    await start_members(run, FIVE)
    await run.finish()
    report = audit_of(await record(run, data[0], tmp_path / "archive"))
    assert report.conclusion is Conclusion.GOOD
    assert report.counts["applied_rounds"] == 6
    assert report.counts["payloads"] == 6 * len(FIVE)
    assert report.findings == []
    assert report.counts["drawn_opened"] == report.counts["drawn_audits"] > 0


async def test_a_run_whose_cheat_was_convicted_passes_and_its_picture_is_true(
    run_factory, data, tmp_path
):
    """The cheat lied in its work and not in its header: the protocol dealt with it."""
    run, books = await stage(run_factory, work_cheat("free-rider"), num_lies=2)
    run.has_blob_folders = True
    for one in run.members:
        await run.stop(one)
        await run.start(one)
    await play_out(run)
    folder = await record(run, data[0], tmp_path / "archive")
    inputs = gather(Asked(None, None, [], [str(folder)], None, folder))
    done = audit(inputs, PLAN, lambda _: None)
    assert len(books.convictions()) == 2
    assert done.report.findings == []
    assert done.report.conclusion is Conclusion.GOOD
    shown = page_data(inputs.ledger.head, done)
    closes = [one for one in books.named("RoundClosed") if not one.flags & RoundFlag.ROOT_ONLY]
    assert participation(shown.rounds) == [of_close(one) for one in closes]
    entries = [one for one in (await run.view()).entries if one.status != Status.EMPTY]
    assert stakes(shown.stakes) == {owner_of(one): one.stake for one in entries}
    assert shown.slashes == tuple(of_loss(one) for one in books.convictions())
    assert all(one.loss is not None for one in shown.rounds if one.num_included)


def participation(rows: Sequence[RoundRow]) -> list[tuple[int, int, int, bool]]:
    """Round, commits, included payloads, and whether it closed void."""
    return [(one.round, one.num_committed, one.num_included, one.is_void) for one in rows]


def of_close(event: RoundClosed) -> tuple[int, int, int, bool]:
    numbers = event.round, event.committed.bit_count(), event.included.bit_count()
    return *numbers, bool(event.flags & RoundFlag.VOID)


def stakes(lines: Sequence[StakeLine]) -> dict[str, int]:
    """The last stake of everybody."""
    return {one.name: one.points[-1][1] for one in lines}


def of_loss(loss: Loss) -> Slash:
    event = loss.event
    assert isinstance(event, CaseSettled)
    taken = event.stake + event.unbonding + event.unvested
    return Slash(event.round, owner_of(loss.before), taken)


def owner_of(entry: EntryView) -> str:
    return str(Pubkey.from_bytes(entry.owner))


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
    assert report.conclusion is Conclusion.GOOD


@pytest.mark.long(reason="a whole run in which a payload is struck")
async def test_a_payload_that_was_struck_because_nobody_had_it_blinds_no_audit(
    run_factory, data, tmp_path, monkeypatch
):
    """Colluders vouch for what they withhold. The round goes on without it, and so do audits."""
    vouch_for_everything(monkeypatch)
    run = await run_factory.create(7)
    run.has_blob_folders = True
    withhold(run, LIE_ROUND, "dan", "fay")
    await start_members(run, ["ada", "bob", "cyd", "dan", "eve", "fay"])
    await run.finish()
    folder = await record(run, data[0], tmp_path / "archive")
    payload, header = withheld(folder)
    for hide in (lambda: spoil_signature(header), payload.unlink, header.unlink):
        hide()
        report = audit_of(folder)
        # All vouch with an invented byte in each round: that is found beside it.
        notes = [one for one in report.findings if one.rule is not Rule.POSSESSION]
        assert notes
        for note in notes:
            assert_fields(note, grade=Grade.NOTE, round=LIE_ROUND, participant=LIAR)
        assert report.counts["roots"] == 8
        assert report.counts["applied_rounds"] == 7
    assert_void_is_named(folder)


def assert_void_is_named(folder: Path) -> None:
    """The round after the lie closed void, to take the payload back: it has no root."""
    at = LIE_ROUND + 1
    report = audit_of(folder, plan=replace(PLAN, start=at, is_exact=True))
    (found,) = (one for one in report.findings if one.grade is Grade.MISSING)
    assert_fields(found, rule=Rule.STATE_ROOT, round=at)
    up_to_it = audit_of(folder, plan=replace(PLAN, end=at))
    assert up_to_it.counts["applied_rounds"] > LIE_ROUND


def spoil_signature(header: Path) -> None:
    """Turn a bit of it: the address of a header does not cover its signature."""
    found = bytearray(header.read_bytes())
    found[-1] ^= 1
    header.write_bytes(found)


def withheld(folder: Path) -> list[Path]:
    """Payload and header of the liar in an archive."""
    signed = {path: headers.decode(path.read_bytes()[:HEADER_BYTES]) for path in headers_in(folder)}
    ((path, header),) = (
        (path, one) for path, one in signed.items() if (one.round, one.index) == (LIE_ROUND, LIAR)
    )
    return [folder / "payload" / header.payload_root.hex(), path]


def headers_in(folder: Path) -> list[Path]:
    return sorted((folder / "header").iterdir())


@pytest.mark.long(reason="a whole run with a case before a jury")
async def test_false_possession_is_a_note_from_its_case_on(
    run_factory, data, tmp_path, monkeypatch
):
    """Dan vouches with invented bytes. Once a jury judges that, the run is as it should be."""
    honest = attest_step.possession

    def possession(run_, round_, owner, payloads):
        proof = honest(run_, round_, owner, payloads)
        if owner != dan.here.chain.identity.owner_address or round_ != LIE_ROUND:
            return proof
        return bytes(255 - byte if at in payloads else 0 for at, byte in enumerate(proof))

    monkeypatch.setattr(attest_step, "possession", possession)
    run = await run_factory.create(6, **JUDGED)
    run.has_blob_folders = True
    await start_members(run, SIX)
    dan, tale = member(run, "dan"), Chronicle(run)
    await until_round(run, LIE_ROUND + 2)
    await accuse(run, LIE_ROUND, dan, AuditKind.POSSESSION, 1)
    await until_event(run, tale, "CaseSettled", audit_kind=int(AuditKind.POSSESSION))
    await play_out(run)
    folder = await record(run, data[0], tmp_path / "archive")
    assert_possession(folder, Grade.NOTE, "another byte: its maker was convicted of it")
    cut_before(folder, b"CaseSettled")
    why = "the case against its maker has not ended"
    assert_possession(folder, Grade.NOTE, f"another byte: {why}")
    cut_before(folder, b"CaseOpened")
    assert_possession(folder, Grade.DISCREPANCY, "another byte")


def assert_possession(folder: Path, grade: Grade, found: str) -> None:
    """Assert that an audit finds false possession, each time of this grade and in these words."""
    named = [one for one in audit_of(folder).findings if one.rule is Rule.POSSESSION]
    assert named
    for one in named:
        assert_fields(one, grade=grade, found=found)


def cut_before(folder: Path, name: bytes) -> None:
    """End the ledger before the first transaction with such an event."""
    found = lines(folder)
    rewrite(folder, found[: next(at for at, line in enumerate(found) if name in line)])
