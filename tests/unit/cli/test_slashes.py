"""How events add up to what was taken from whom, with and without the accounts."""

from dataclasses import fields, replace

from solders.pubkey import Pubkey
from support.views import network

from troth_audit.cases import CaseFile, Money
from troth_audit.history import closed_in, of_events
from troth_audit.slashes import Fine, Slashes, slashes_of
from troth_cli.slot_time import STATED
from troth_cli.view.case_list import list_blocks
from troth_cli.view.cases import case_blocks, case_values, history_values
from troth_cli.view.slashes import slash_grids, slash_values
from troth_cli.workflows.case_list import CaseList
from troth_coordinator.chain import event_types_audits as audit_events
from troth_coordinator.rules.audit_view import AuditFlag

KEY = (7, 5, 0)
ZEROS = {"int": 0, "bool": False, "bytes": b"", "Pubkey": Pubkey.default()}


def event(kind, **values):
    """An event of round 7 about participant 5, zeros where nothing is said."""
    known = {"round": 7, "target": 5} | values
    plain = {
        one.name: known.get(one.name, ZEROS.get(str(one.type), 0))
        for one in fields(kind)
        if one.name != "kind"
    }
    return kind(**plain)


OPENED = event(audit_events.AuditOpened, seats=(1, 2, 3, 4, 65_535))
SHOWN = [event(audit_events.VerdictRevealed, index=index, verdict=2) for index in (1, 2, 3, 4)]
ACCUSED = event(audit_events.AuditSettled, outcome=3)
DRAWN = event(audit_events.JuryDrawn, jurors=(1, 2, 3, *[65_535] * 4))
CONVICTED = event(audit_events.CaseSettled, outcome=1, stake=50, unvested=12)
PAID = event(audit_events.AuditClosed, burned=62)
STORY = [OPENED, *SHOWN, ACCUSED, DRAWN, CONVICTED, PAID]


def test_a_closed_conviction_is_read_from_its_events():
    case = of_events(KEY, STORY)
    assert case.is_conviction
    assert case.is_accused
    assert case.stage == "CLOSED"
    assert case.money.taken == 62
    assert case.money.is_paid is True
    assert {seat.index: seat.verdict for seat in case.seats} == dict.fromkeys((1, 2, 3, 4), 2)
    assert [juror.index for juror in case.jurors] == [1, 2, 3]
    words = str(case_blocks(case, STORY, 0, STATED))
    for part in ("convicted", "from stake", "from unvested", "burned", "CaseSettled"):
        assert part in words, part


def test_what_went_to_the_jurors_at_once_waits_in_no_escrow():
    """A further conviction takes a reward, and its jurors may get all of it."""
    case = replace(of_events(KEY, STORY[:-1]), case_outcome=1)
    for money, is_paid_out in (
        (Money(unvested=10, jurors=10), True),
        (Money(unvested=10, jurors=9), False),
        (Money(unvested=10, jurors=9, is_paid=True), True),
    ):
        slashes = Slashes((replace(case, money=money),), (), ())
        (slash,) = slashes_of(slashes)
        assert slash.is_paid_out is is_paid_out


def test_a_bond_is_followed_to_its_end():
    opened = event(audit_events.CaseOpened, bond=100)
    lost = event(
        audit_events.CaseSettled, outcome=2, bond_spent=40, bond_acquitted=30, bond_burned=30
    )
    case = of_events(KEY, [opened, lost])
    assert not case.is_conviction
    assert case.bond.posted == 100
    assert case.bond.spent == 40
    assert case.bond.burned == 30
    assert "to the acquitted" in str(case_blocks(case, [], 0, STATED))


def test_what_the_runs_money_does_not_tell_of_a_closed_case_is_null():
    settled = replace(CONVICTED, flags=int(AuditFlag.BONDED))
    (case,) = closed_in([ACCUSED, settled, PAID])
    values = case_values(case)
    assert values["seats"] is None
    assert values["jurors"] is None
    assert values["bond_lamports"] is None
    assert set(values["bond"].values()) == {None}
    assert values["taken_lamports"] == 62
    told = case_values(of_events(KEY, STORY))
    assert len(told["seats"]) == 4
    assert told["bond_lamports"] == 0


def test_of_a_bond_that_was_posted_too_long_ago_its_parts_are_known():
    settled = replace(CONVICTED, flags=int(AuditFlag.BONDED), bond_spent=40, bond_returned=60)
    (case,) = closed_in([settled, PAID])
    bond = case_values(case)["bond"]
    assert bond["posted_lamports"] is None
    assert bond["spent_lamports"] == 40
    assert bond["burned_lamports"] == 0


def test_the_list_of_what_is_over_has_no_column_for_verdicts():
    over = closed_in([ACCUSED, CONVICTED, PAID])
    open_ones = [replace(of_events(KEY, STORY[:-1]), ends=9)]
    found = CaseList(network(), STATED, open_ones, over, None)
    still, done = list_blocks(found)
    assert still.columns[5] == "verdicts"
    assert still.rows[0][5] == "1: -, 2: -, 3: -"
    assert done.columns == ("round", "target", "kind", "stage", "outcome", "taken")
    assert [len(row) for row in done.rows] == [6]


def test_openings_withheld_from_the_jury_are_a_fine_and_no_conviction():
    votes = [event(audit_events.JurorVoteRevealed, index=index, verdict=3) for index in (1, 2, 3)]
    refused = event(audit_events.CaseSettled, outcome=5, fault=5)
    case = of_events(KEY, [OPENED, DRAWN, *votes, refused])
    assert case.stage == "DECIDED"
    assert case.is_conviction is False
    assert case.money.taken == 0
    assert "no openings" in str(case_blocks(case, [], 0, STATED))
    (slash,) = slashes_of(Slashes((case,), (Fine(7, 5, 5, "P5", 20, 0, 20),), ()))
    assert slash.fault.value == "P5"
    assert slash.taken == 20


def test_each_step_of_a_case_names_who_acted_and_the_verdict_that_it_shows():
    challenged = event(audit_events.CaseOpened, challenger_index=6)
    by_a_stranger = event(audit_events.CaseOpened, challenger_index=65_535)
    steps = [
        (OPENED, None, None),
        (event(audit_events.OpeningsPosted), 5, None),
        (event(audit_events.VerdictCommitted, index=0), 0, None),
        (event(audit_events.VerdictRevealed, index=0, verdict=2), 0, "mismatch"),
        (ACCUSED, None, None),
        (challenged, 6, None),
        (by_a_stranger, None, None),
        (event(audit_events.JurorVoteRevealed, index=3, verdict=1), 3, "ok"),
        (event(audit_events.Penalised, index=4), 4, None),
        (event(audit_events.CaseAppealed), 5, None),
        (PAID, None, None),
    ]
    story = [one for one, *_ in steps]
    values = history_values(story)
    assert [one["index"] for one in values] == [who for _, who, _ in steps]
    assert [one["verdict"] for one in values] == [verdict for *_, verdict in steps]
    (grid,) = [one for one in case_blocks(of_events(KEY, story), story, 0, STATED)[1:] if one.title]
    assert grid.columns == ("slot", "event", "what", "who", "verdict")
    assert grid.rows[2][2:] == ["VerdictCommitted", 0, ""]
    assert grid.rows[3][2:] == ["VerdictRevealed", 0, "mismatch"]
    assert grid.rows[4][2:] == ["AuditSettled", "", ""]


def test_what_was_given_back_is_no_slash():
    back = event(audit_events.AuditClosed, returned=62)
    for story in (
        [*STORY[:-1], event(audit_events.CaseReversed), back],
        [*STORY[:-1], back],
    ):
        assert not of_events(KEY, story).is_conviction


def test_status_lists_convictions_and_fines_by_round():
    fine = Fine(3, 9, 1, "P6", 2, 0, 2)
    slashes = slashes_of(Slashes((of_events(KEY, STORY),), (fine,), ()))
    rows = [slash_values(one) for one in slashes]
    assert [row["round"] for row in rows] == [3, 7]
    assert [row["index"] for row in rows] == [1, 5]
    assert [row["fault"] for row in rows] == ["P6", "P3"]
    assert [row["is_paid_out"] for row in rows] == [True, True]
    assert [row.get("challenger_lamports") for row in rows] == [None, 0]
    assert [row.get("acquitted_lamports") for row in rows] == [0, None]
    (grid,) = slash_grids(slashes)
    assert "P6 absent seat" in grid.rows[0]
    assert slash_grids([]) == []


def test_an_open_account_is_believed_before_the_transactions():
    decided = of_events(KEY, STORY[:-1])
    reversed_ = replace(decided, flags=AuditFlag.REVERSED)
    past = Slashes((decided,), (), ())
    assert [one.is_paid_out for one in slashes_of(past)] == [False]
    assert slashes_of(past, [reversed_]) == []


def test_an_audit_without_events_is_none():
    assert of_events(KEY, []) is None
    assert isinstance(of_events(KEY, [OPENED]), CaseFile)
