"""`troth status` shows the fees of participants on this machine."""

import io

from troth_cli.view.output import Output
from troth_cli.view.payers import payer_grids, payer_values
from troth_client.telemetry.event_log import EVENTS_FILE, NEWEST_BYTES, EventLog

FIELDS = {
    "spendable": 90_000,
    "rounds_left": 5,
    "per_round": 10_000,
    "policy": "percentile:75",
    "priority_cap": 100_000,
    "priority_spent": 1_234,
    "priority_epoch_cap": 10_000_000,
}


def folder_with(path, *events):
    with EventLog.open(path / EVENTS_FILE) as log:
        for name, fields in events:
            log.emit(name, **fields)
    return path


def test_the_newest_reading_counts(tmp_path):
    older = FIELDS | {"rounds_left": 6}
    events = [("payer", older), ("payer", FIELDS), ("committed", {"note": "payer"})]
    (found,) = payer_values([folder_with(tmp_path, *events)])
    assert found["rounds_left"] == 5
    assert found["priority_fee"] == "percentile:75"
    assert found["spendable_lamports"] == 90_000
    assert found["priority_spent_lamports"] == 1_234
    assert found["state"] == str(tmp_path)


def test_people_read_it_in_sol(tmp_path):
    out = io.StringIO()
    payers = payer_values([folder_with(tmp_path, ("payer", FIELDS))])
    Output(out=out).result({}, *payer_grids(payers))
    for text in ("percentile:75", "0.00009 SOL", "0.000001234 SOL", "0.01 SOL"):
        assert text in out.getvalue()


def test_a_folder_without_a_log_or_a_reading_shows_nothing(tmp_path):
    other = folder_with(tmp_path / "other", ("joined", {}))
    assert payer_values([tmp_path / "none", other]) == []
    assert payer_grids([]) == []


def test_a_long_log_is_not_read_whole(tmp_path):
    filling = ("filling", {"text": "x" * NEWEST_BYTES})
    assert payer_values([folder_with(tmp_path, ("payer", FIELDS), filling)]) == []
