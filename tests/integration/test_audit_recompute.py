"""`troth audit --recompute`: gradients computed again find what a whole committee passed over."""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.attacks.judges import saying
from support.cli import Cli
from support.forgeries import blobs, flip, lines, rewrite
from support.ports import Wrapped
from support.recordings import audit_of, point_of, put, record
from support.runs import AUDITED, FIVE, settings_of, start_members

from troth_attestation.sketch import NUM_BUCKETS
from troth_attestation.verdict import VerdictKind
from troth_audit.replay.findings import Grade, Rule
from troth_audit.replay.report import Conclusion, Report
from troth_cli.workflows import audit_point
from troth_cli.workflows.audit_inputs import Asked, gather
from troth_cli.workflows.audit_replay import Plan
from troth_cli.workflows.audit_survey import drawn_from
from troth_client.audit import replayed
from troth_client.audit.judgement import Evidence
from troth_client.audit.witness import HonestWitnessWork, WitnessWork
from troth_client.data.manifest import PIECE_BYTES, Manifest
from troth_client.data.shards import TokenData
from troth_simulation.cheats.catalogue import FREE_RIDER
from troth_simulation.cheats.ports import cheating
from troth_simulation.in_process import InProcessRun

ROUNDS = 6
ALL = 1_000
CHEAT = "emma"
CHEAT_INDEX = FIVE.index(CHEAT)


class KilledError(Exception):
    """The process ends here."""


Seats = Callable[[HonestWitnessWork], WitnessWork]


def play(data, folder: Path, seats: Seats, opened: dict[str, bytes]) -> Path:
    """A run in which emma computes nothing and everybody judges so; return its archive."""

    async def to_the_end() -> Path:
        settings = settings_of(data[1], ROUNDS, **AUDITED)
        run = await InProcessRun.create(settings, TokenData(*data), folder / "run")
        run.has_blob_folders = True

        def wrap(one, ports):
            colluding = replace(ports, judges=seats)
            return cheating(FREE_RIDER, colluding) if one.name == CHEAT else colluding

        run.wrap = wrap
        await start_members(run, FIVE)
        await run.finish()
        archive = await record(run, data[0], folder / "archive")
        for root, openings in opened.items():
            put(archive, "openings", root, openings)
        return archive

    return asyncio.run(to_the_end())


def clearing(opened: dict[str, bytes]) -> Seats:
    """Seats that say that all work matches; what they are shown goes to `opened`."""

    return saying(lambda evidence, _found: keep(opened, evidence) or VerdictKind.OK)


def keep(opened: dict[str, bytes], evidence: Evidence) -> None:
    """Add what a seat is shown to `opened`."""
    if evidence.openings is not None:
        opened[evidence.openings_root.hex()] = evidence.openings


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory) -> Path:
    """Every seat clears all work, with the sketch of a gradient that it did compute."""
    opened: dict[str, bytes] = {}
    return play(data, tmp_path_factory.mktemp("recorded"), clearing(opened), opened)


@pytest.fixture
def archive(recorded, tmp_path) -> Path:
    """A copy to forge."""
    return Path(shutil.copytree(recorded, tmp_path / "archive"))


@pytest.fixture
def cli(capsys, monkeypatch) -> Cli:
    """The command line, with no RPC node in the environment."""
    monkeypatch.delenv("TROTH_RPC", raising=False)
    return Cli(capsys)


def plan_of(data, num: int = ALL, **changes) -> Plan:
    return Plan(num_threads=1, data=data[0], num_drawn=num, draw_key="test", **changes)


def wrong(report: Report) -> list[tuple[Rule, int | None]]:
    """Rule and participant of each discrepancy."""
    found = report.findings
    return [(one.rule, one.participant) for one in found if one.grade is Grade.DISCREPANCY]


def test_a_committee_that_clears_work_that_was_not_done_is_found(recorded, data):
    """Its events, headers and roots are all as they should be: only a gradient tells."""
    assert audit_of(recorded).conclusion is Conclusion.GOOD
    report = audit_of(recorded, plan=plan_of(data))
    assert report.conclusion is Conclusion.WRONG
    assert {rule for rule, _ in wrong(report)} == {Rule.WORK}
    assert {index for _, index in wrong(report)} == {CHEAT_INDEX}
    assert all("ended as cleared" in one.found for one in report.findings)
    counts = report.counts
    assert counts["recomputed_audits"] + counts["recomputed_votes"] == counts["payloads"]
    assert counts["recomputed_votes"] > 0
    assert counts["recomputed_sketches"] == 3 * counts["recomputed_audits"]


@pytest.mark.long(reason="a second whole run; make test has the one whose seats clear")
def test_seats_that_were_paid_for_the_sketch_of_no_gradient_are_named(data, tmp_path):
    """They agree on a sketch, so the program pays them; nobody computed anything."""
    opened: dict[str, bytes] = {}

    def seats(honest: HonestWitnessWork) -> WitnessWork:
        made_up = (7, *range(1, NUM_BUCKETS))
        clears = clearing(opened)(honest)
        return Wrapped(clears, sketch=lambda _gradient, _seed, _target: made_up)

    report = audit_of(play(data, tmp_path, seats, opened), plan=plan_of(data))
    found = wrong(report)
    assert {index for rule, index in found if rule is Rule.VERDICT} == set(range(len(FIVE)))
    num_sketches = sum(rule is Rule.VERDICT for rule, _ in found)
    assert num_sketches == report.counts["recomputed_sketches"] > 0


@pytest.mark.long(reason="a second whole run, cut off before its jury decides")
def test_what_a_jury_is_still_to_judge_accuses_nobody(data, tmp_path):
    """A cheat's case is under way: the run goes on as it should, and so it reads in its audit."""
    opened: dict[str, bytes] = {}
    archive = play(data, tmp_path, saying(lambda evidence, _: keep(opened, evidence)), opened)
    whole = audit_of(archive, plan=plan_of(data))
    assert whole.counts["cases"] > 0
    assert whole.conclusion is Conclusion.GOOD
    found = lines(archive)
    settled = next(at for at, line in enumerate(found) if b"CaseSettled" in line)
    rewrite(archive, found[:settled])
    live = audit_of(archive, plan=plan_of(data))
    assert wrong(live) == []
    notes = [one for one in live.findings if one.rule is Rule.WORK]
    assert {one.grade for one in notes} == {Grade.NOTE}
    assert {one.participant for one in notes} == {CHEAT_INDEX}
    assert any(one.found.endswith("its case has not ended") for one in notes)


def test_as_many_are_computed_again_as_asked_for_and_a_key_draws_the_same(recorded, data):
    report = audit_of(recorded, plan=plan_of(data, 5))
    assert report.counts["recomputed_audits"] == 5
    assert report.counts["recomputed_votes"] == 0
    assert audit_of(recorded, plan=plan_of(data, 5)).findings == report.findings


@pytest.mark.long(reason="two hundred draws")
def test_a_draw_spreads_over_all_payloads_with_open_tiles(recorded):
    """Of 200 draws of one payload, each with open tiles comes up at times, and no other."""
    ledger = gather(Asked(None, None, [], [str(recorded)], None, recorded)).ledger
    every = drawn_from(ledger, ALL, "", range(ROUNDS))
    draws = [drawn_from(ledger, 1, str(key), range(ROUNDS)) for key in range(200)]
    assert {place for draw in draws for place in draw} == {
        place for place, one in every.items() if one.openings_root
    }


@pytest.mark.parametrize(
    ("forge", "grades"),
    [
        (Path.unlink, {Grade.MISSING}),
        (lambda path: flip(path, 40), {Grade.MISSING, Grade.DISCREPANCY}),
    ],
)
def test_open_tiles_that_are_missing_or_altered_are_named(archive, data, forge, grades):
    path = blobs(archive, "openings")[0]
    forge(path)
    report = audit_of(archive, plan=plan_of(data))
    found = [one for one in report.findings if one.rule is Rule.OPENINGS]
    assert {one.grade for one in found} == grades
    assert all(path.name in one.expected for one in found)


def test_without_data_the_audit_says_that_tokens_are_missing(archive):
    report = audit_of(archive, plan=Plan(num_threads=1, num_drawn=1))
    assert report.conclusion is Conclusion.INCOMPLETE
    (found,) = report.findings
    assert found.rule is Rule.WORK
    assert found.expected == "the tokens of its sequences"


def test_without_memory_for_a_gradient_nothing_is_judged_and_the_audit_says_so(
    recorded, data, monkeypatch
):
    monkeypatch.setattr(replayed, "recompute", lambda *_: torch.empty(2**60))
    report = audit_of(recorded, plan=plan_of(data, 2))
    assert report.conclusion is Conclusion.INCOMPLETE
    assert {one.expected for one in report.findings} == {"memory for its gradient"}
    assert report.counts["recomputed_audits"] == 0


def test_pieces_of_the_data_in_an_archive_do_as_well_as_the_folder(archive, data):
    put_data(archive, *data)
    plan = replace(plan_of(data), data=None)
    assert audit_of(archive, plan=plan).findings == audit_of(archive, plan=plan_of(data)).findings


def put_data(archive: Path, folder: Path, manifest: Manifest) -> None:
    """Lay the pieces of all shards into an archive."""
    for shard in manifest.train:
        whole = (folder / shard.file).read_bytes()
        for number, name in enumerate(shard.pieces):
            put(archive, "piece", name, whole[number * PIECE_BYTES :][:PIECE_BYTES])


def test_another_data_folder_is_refused(cli, recorded, tmp_path):
    found = ("audit", "--archive", recorded, "--recompute", 2, "--data", tmp_path)
    assert cli.refused(*found, code=2)["kind"] == "ManifestError"


@pytest.mark.parametrize("key", ["a b", "ü", "x" * 33, "../up"])
def test_a_key_that_no_report_has_is_refused(cli, recorded, key):
    error = cli.refused("audit", "--archive", recorded, "--draw", key, code=2)
    assert error["kind"] == "InputError"


def test_the_report_names_the_key_of_its_draw_and_the_same_command_draws_again(cli, recorded, data):
    asked = ("audit", "--archive", recorded, "--recompute", 24, "--data", data[0], "--json")
    first = cli(*asked)
    assert first.code == 1
    again = cli(*asked, "--draw", first.json["draw"])
    assert again.json["findings"] == first.json["findings"]


def test_a_payload_that_is_missing_leaves_no_weights_to_compute_on(archive, data):
    blobs(archive, "payload")[0].unlink()
    report = audit_of(archive, plan=plan_of(data))
    told = [one.expected for one in report.findings if one.rule is Rule.WORK]
    assert any(one.startswith("the weights of round") for one in told)
    assert (
        report.counts["recomputed_audits"]
        < audit_of(archive, plan=plan_of(data, 0)).counts["payloads"]
    )


def test_a_killed_audit_goes_on_with_the_same_draw(archive, data, tmp_path, monkeypatch):
    monkeypatch.setattr(audit_point, "REST_SECONDS", 0.0)
    monkeypatch.setattr(audit_point, "SHARE", 0)
    plan = replace(plan_of(data, 12, state=tmp_path / "state"), draw_key="")

    def kill(round_: int) -> None:
        if round_ == ROUNDS // 2:
            raise KilledError

    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill)
    key = point_of(tmp_path / "state").order.draw_key
    resumed = audit_of(archive, plan=plan)
    assert resumed.order is not None
    assert resumed.order.draw_key == key
    whole = audit_of(archive, plan=replace(plan_of(data, 12), draw_key=key))
    assert resumed.findings == whole.findings
    assert resumed.counts == whole.counts


def test_an_audit_that_is_asked_for_more_does_not_go_on_from_one_of_less(
    archive, data, tmp_path, monkeypatch
):
    monkeypatch.setattr(audit_point, "REST_SECONDS", 0.0)
    monkeypatch.setattr(audit_point, "SHARE", 0)
    state = tmp_path / "state"
    assert audit_of(archive, plan=plan_of(data, 0, state=state)).conclusion is Conclusion.GOOD
    assert audit_of(archive, plan=plan_of(data, ALL, state=state)).conclusion is Conclusion.WRONG
