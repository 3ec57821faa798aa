"""An audit that was killed goes on where it was, and says the same in the end."""

import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.forgeries import blobs, flip, lines, reforge, rewrite, swapped
from support.recordings import audit_of, play, play_over_a_halt, point_of, put

from troth_attestation.pieces import StateName, pieces_of
from troth_audit.replay.findings import Grade
from troth_audit.replay.report import Conclusion
from troth_cli.workflows import audit_point
from troth_cli.workflows.audit_replay import Plan
from troth_cli.workflows.audit_survey import start_before
from troth_client.model.shapes import trainable_shapes
from troth_client.run_files.fetch import parse_config
from troth_coordinator.chain.event_types_rounds import PayloadCommitted
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.file import Ledger

ROUNDS = 6


class KilledError(Exception):
    """The process ends here."""


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory) -> Path:
    """The archive of an honest run of two."""
    return play(data, tmp_path_factory.mktemp("recorded"), ROUNDS, ("ada", "bob"))


@pytest.fixture
def archive(recorded, tmp_path, monkeypatch) -> Path:
    """A copy to forge; points are kept at every round."""
    monkeypatch.setattr(audit_point, "REST_SECONDS", 0.0)
    monkeypatch.setattr(audit_point, "SHARE", 0)
    return Path(shutil.copytree(recorded, tmp_path / "archive"))


def kill_at(last: int):
    def on_round(round_: int) -> None:
        if round_ == last:
            raise KilledError

    return on_round


@pytest.mark.parametrize("last", [0, 1, 3, ROUNDS - 1])
def test_a_killed_audit_goes_on_and_counts_everything_once(archive, tmp_path, last):
    plan = Plan(num_threads=1, state=tmp_path / "state")
    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill_at(last))
    rounds: list[int] = []
    resumed = audit_of(archive, plan=plan, on_round=rounds.append)
    whole = audit_of(archive)
    assert resumed.conclusion is Conclusion.GOOD
    assert resumed.counts == whole.counts
    assert resumed.rounds == whole.rounds


@pytest.mark.long(reason="a run that halts and starts again")
def test_a_killed_audit_still_has_the_weights_of_the_stored_root_where_the_run_restarts(
    data, tmp_path, monkeypatch
):
    """The weights of round 4 are kept by the first process, and needed by a later one."""
    monkeypatch.setattr(audit_point, "REST_SECONDS", 0.0)
    monkeypatch.setattr(audit_point, "SHARE", 0)
    halted = play_over_a_halt(data, tmp_path)
    whole = audit_of(halted)
    for kills in ((4,), (5,), (5, 6), (3, 5, 9), (11,)):
        plan = Plan(num_threads=1, state=tmp_path / f"state{kills}")
        for last in kills:
            with pytest.raises(KilledError):
                audit_of(halted, plan=plan, on_round=kill_at(last))
        resumed = audit_of(halted, plan=plan)
        assert resumed.resumed_round is not None, kills
        assert resumed.findings == [], kills
        assert resumed.counts == whole.counts, kills


def test_what_was_found_before_the_kill_is_in_the_end_result(archive, tmp_path):
    payloads = blobs(archive, "payload")
    whole = audit_of(archive)
    flip(blobs(archive, "header")[0], -1)
    found = audit_of(archive).findings
    plan = Plan(num_threads=1, state=tmp_path / "state")
    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill_at(ROUNDS - 1))
    for path in payloads:
        path.unlink()  # the resumed audit reads those of the last round alone
    resumed = audit_of(archive, plan=plan)
    assert whole.findings == []
    assert [one for one in resumed.findings if one in found] == found
    assert {one.round for one in resumed.findings if one not in found} == {ROUNDS - 1}


@pytest.mark.parametrize("name", ["audit.point", ".weights"])
def test_a_damaged_point_is_not_taken(archive, tmp_path, name):
    plan = Plan(num_threads=1, state=tmp_path / "state")
    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill_at(3))
    for path in (tmp_path / "state").glob(f"*{name}"):
        flip(path, 5)
    assert audit_of(archive, plan=plan).counts == audit_of(archive).counts


def test_what_a_killed_audit_was_writing_is_removed(archive, tmp_path):
    (tmp_path / "state").mkdir()
    left = tmp_path / "state" / f"{'ab' * 32}.weights.tmp"
    left.write_bytes(b"a part of the weights")
    (tmp_path / "state" / "draft.tmp").write_bytes(b"somebody's own")
    audit_of(archive, plan=Plan(num_threads=1, state=tmp_path / "state"))
    assert not left.exists()
    assert (tmp_path / "state" / "draft.tmp").exists()


def test_torn_weights_of_a_point_are_written_anew(archive, tmp_path):
    """The audit that finds them starts from the beginning; the next one goes on from its point."""
    plan = Plan(num_threads=1, state=tmp_path / "state")
    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill_at(1))
    flip(tmp_path / "state" / f"{point_of(tmp_path / 'state').root}.weights", 5)
    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill_at(1))
    assert audit_of(archive, plan=plan).resumed_round == 1


def test_a_folder_under_the_name_of_weights_costs_the_point_and_not_the_audit(archive, tmp_path):
    plan = Plan(num_threads=1, state=tmp_path / "state", warn=(warnings := []).append)
    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill_at(3))
    root = point_of(tmp_path / "state").root
    shutil.rmtree(tmp_path / "state")
    (tmp_path / "state" / f"{root}.weights").mkdir(parents=True)
    (tmp_path / "state" / "mine.weights").mkdir()
    report = audit_of(archive, plan=plan)
    assert report.conclusion is Conclusion.GOOD
    assert ["Is a directory" in one for one in warnings] == [True]
    assert (tmp_path / "state" / "mine.weights").is_dir()


def test_a_point_that_is_a_fifo_is_not_waited_for(archive, tmp_path):
    (tmp_path / "state").mkdir()
    os.mkfifo(tmp_path / "state" / "audit.point")
    plan = Plan(num_threads=1, state=tmp_path / "state")
    assert audit_of(archive, plan=plan).resumed_round is None


class CountedLedger(Ledger):
    """A ledger that counts the entries that are read."""

    num_read = 0

    def entries(self) -> Iterator[Entry]:
        for entry in super().entries():
            CountedLedger.num_read += 1
            yield entry


class NoWeights:
    """Weights of which no source has any."""

    def take_up(self, *state: object) -> bool:
        return False


def test_the_ledger_is_read_no_further_than_the_checkpoints_that_may_count(archive, monkeypatch):
    monkeypatch.setattr(CountedLedger, "num_read", 0)
    ledger = CountedLedger.of(archive / "ledger.jsonl")
    assert start_before(ledger, 0, NoWeights()) == 0
    assert CountedLedger.num_read == 0
    assert start_before(ledger, 2, NoWeights()) == 0
    assert 0 < CountedLedger.num_read < len(list(Ledger.entries(ledger)))


def test_the_point_holds_two_states_at_most(archive, tmp_path):
    plan = Plan(num_threads=1, state=tmp_path / "state")
    audit_of(archive, plan=plan)
    assert len(list((tmp_path / "state").glob("*.weights"))) <= 2


def test_weights_of_a_checkpoint_come_piece_by_piece_and_earlier_payloads_are_not_read(
    archive, tmp_path
):
    """The archive has the pieces of the weights of round 2, and no payload before it."""
    with pytest.raises(KilledError):
        plan = Plan(num_threads=1, state=tmp_path / "state")
        audit_of(archive, plan=plan, on_round=kill_at(2))
    put_pieces(archive, tmp_path / "state", 2)
    early = audit_of(archive, plan=Plan(num_threads=1, end=2)).counts["payloads"]
    report = audit_of(archive, plan=Plan(num_threads=1, start=2, is_exact=True))
    assert report.conclusion is Conclusion.GOOD
    assert report.counts["payloads"] == 2 * ROUNDS - early
    assert report.counts["applied_rounds"] == ROUNDS - 2
    flip(blobs(archive, "piece")[0], 0)
    broken = audit_of(archive, plan=Plan(num_threads=1, start=2, is_exact=True))
    assert broken.conclusion is Conclusion.INCOMPLETE


def test_rounds_are_replayed_from_the_newest_checkpoint_before_them_that_somebody_has(
    archive, tmp_path
):
    """The archive has the pieces of the weights of round 2, not of the stored round 4."""
    with pytest.raises(KilledError):
        plan = Plan(num_threads=1, state=tmp_path / "state")
        audit_of(archive, plan=plan, on_round=kill_at(2))
    put_pieces(archive, tmp_path / "state", 2)
    later = Plan(num_threads=1, start=5)
    report = audit_of(archive, plan=later)
    assert report.conclusion is Conclusion.GOOD
    assert report.order is not None
    assert report.order.start == 2
    assert report.counts["applied_rounds"] == ROUNDS - 2
    liar = Path(shutil.copytree(archive, tmp_path / "liar"))
    flip(blobs(liar, "pieces")[0], 0)
    mended = audit_of(liar, archive, plan=later).order
    assert mended == report.order
    flip(blobs(archive, "piece")[0], 0)
    from_genesis = audit_of(archive, plan=later)
    assert from_genesis.conclusion is Conclusion.GOOD
    assert from_genesis.order is not None
    assert from_genesis.order.start == 0
    assert from_genesis.counts["applied_rounds"] == ROUNDS


def put_pieces(archive: Path, state: Path, round_: int) -> None:
    """Lay the weights that an audit kept into an archive, as pieces under their root."""
    saved = point_of(state)
    assert saved.round == round_
    config = parse_config(blobs(archive, "config")[0].read_bytes())
    data = np.frombuffer((state / f"{saved.root}.weights").read_bytes(), "<f4")
    arrays, at = {}, 0
    for name, shape in sorted(trainable_shapes(config.model).items()):
        size = math.prod(shape)
        arrays[name] = data[at : at + size].reshape(shape)
        at += size
    name = StateName(round_, saved.cursor, config.config_hash())
    pieces = pieces_of(arrays, name)
    put(archive, "pieces", pieces.root.hex(), pieces.encode())
    for piece in pieces.pieces():
        whole = arrays[piece.tensor].tobytes()
        put(archive, "piece", piece.hash.hex(), whole[piece.offset :][: piece.num_bytes])


def test_a_point_of_a_shorter_plan_is_not_taken_for_the_whole_run(archive, tmp_path):
    """The audit before began at round 2: nobody replayed rounds 0 and 1."""
    with pytest.raises(KilledError):
        plan = Plan(num_threads=1, state=tmp_path / "state")
        audit_of(archive, plan=plan, on_round=kill_at(2))
    put_pieces(archive, tmp_path / "state", 2)
    late = Plan(num_threads=1, start=2, state=tmp_path / "late")
    with pytest.raises(KilledError):
        audit_of(archive, plan=late, on_round=kill_at(4))
    whole = audit_of(archive, plan=Plan(num_threads=1, state=tmp_path / "late"))
    assert whole.resumed_round is None
    assert whole.counts["applied_rounds"] == ROUNDS


def test_a_point_of_another_ledger_passes_nothing(archive, recorded, tmp_path):
    """The point is of the true ledger; the forged one names other headers in rounds before it."""
    plan = Plan(num_threads=1, state=tmp_path / "state")
    with pytest.raises(KilledError):
        audit_of(recorded, plan=plan, on_round=kill_at(4))

    def edit(event: object) -> bytes | None:
        if isinstance(event, PayloadCommitted) and event.round == 1 and event.index == 0:
            return swapped(event, event.header_hash, b"\1" * 32)
        return None

    reforge(archive, edit)
    (archive / "chain.json").unlink()
    found = audit_of(archive, plan=plan)
    assert found.resumed_round == 4
    assert "another ledger" in " ".join(one.found for one in found.findings)
    assert found.conclusion is Conclusion.INCOMPLETE


def test_a_point_beyond_the_ledger_passes_nothing(archive, tmp_path):
    plan = Plan(num_threads=1, state=tmp_path / "state")
    audit_of(archive, plan=plan)
    kept = lines(archive)
    first_closes = [at for at, line in enumerate(kept) if b"RoundClosed" in line][:2]
    rewrite(archive, kept[: first_closes[-1] + 1])
    (archive / "chain.json").unlink()
    assert audit_of(archive, plan=plan).conclusion is Conclusion.INCOMPLETE


def test_counts_that_somebody_changed_are_not_taken(archive, tmp_path):
    plan = Plan(num_threads=1, state=tmp_path / "state")
    with pytest.raises(KilledError):
        audit_of(archive, plan=plan, on_round=kill_at(3))
    point = tmp_path / "state" / "audit.point"
    kept = point.read_bytes()
    more = kept.replace(b'applied\\":', b'applied\\":1')
    point.write_bytes(more)
    assert len(more) == len(kept) + 1
    assert audit_of(archive, plan=plan).resumed_round is None


def test_a_window_that_the_run_never_reached_is_missing(archive):
    report = audit_of(archive, plan=Plan(num_threads=1, start=1_000, end=2_000))
    (found,) = report.findings
    assert found.grade is Grade.MISSING
    assert found.round == 1_000
    assert report.conclusion is Conclusion.INCOMPLETE
