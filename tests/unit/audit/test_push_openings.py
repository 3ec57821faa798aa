"""Pushed sets: the holders that we ask, the pauses between, and the sets that we take."""

from dataclasses import replace

import pytest
from support.audit_driver import (
    AUDIT,
    FROZEN_AT,
    INDEX,
    AuditDriver,
    settle,
    view_at,
)
from support.audit_views import audit_view, juror, seat
from support.views import network

from troth_attestation.header import header_hash
from troth_client.audit.push_openings import (
    MAX_PAUSE_SLOTS,
    NUM_SPARES,
    PASS_ON_SLOTS,
    push_openings,
    sets_to_push,
    want_openings,
)
from troth_coordinator.rules.audit_view import MAY_BE_SHOWN, AuditKind, AuditStage
from troth_coordinator.rules.view import Status

SEATS = ("peer-1", "peer-2", "peer-3")
JUDGE = 2
OPEN = audit_view(openings_root=AUDIT.root, header_hash=header_hash(AUDIT.header))
AT = FROZEN_AT + 1


def people(slot=AT, sequence=1, living=range(6)):
    """A look at a run in which these indices take part."""
    found = view_at(slot, sequence)
    entries = tuple(
        replace(entry, owner=bytes([n + 1]) * 32, status=Status.ACTIVE if n in living else 0)
        for n, entry in enumerate(network().entries)
    )
    return replace(found, entries=entries)


async def driven(tmp_path, index):
    one = AuditDriver(tmp_path, index)
    for number, entry in enumerate(people().entries[:6]):
        one.submissions.endpoints_of[number] = (entry.owner, f"peer-{number}")
    return one


@pytest.fixture
async def target(tmp_path):
    """The participant whose payload is sampled; it has made its set."""
    one = await driven(tmp_path, INDEX)
    one.audits.openings.make(AUDIT.sampled, AUDIT.after, AUDIT.before)
    yield one
    await one.close()


@pytest.fixture
async def judge(tmp_path):
    """A participant with a seat in the audit."""
    one = await driven(tmp_path, JUDGE)
    yield one
    await one.close()


async def pushing(driver, audit=OPEN):
    await driver.see(people(), audit)
    driver.start(push_openings(driver.witness, audit))
    await settle()


async def test_the_target_pushes_to_all_seats_and_to_two_others(target):
    await pushing(target)
    (offered,) = target.holders.offers
    assert set(SEATS) < set(offered)
    assert set(offered) - set(SEATS) == {"peer-0", "peer-4"}
    (event,) = target.named("openings_pushed")
    assert event["taken"] == 3 + NUM_SPARES
    assert event["failed"] == 0


async def test_a_member_without_an_address_takes_no_turn_of_another(target):
    """Nobody can be reached at no address, so two others keep the set."""
    view = people(living=range(8))
    for number, address in ((0, ""), (4, ""), (6, "peer-6"), (7, "peer-7")):
        target.submissions.endpoints_of[number] = (view.entries[number].owner, address)
    await target.see(view, OPEN)
    target.start(push_openings(target.witness, OPEN))
    await settle()
    (offered,) = target.holders.offers
    assert set(offered) == {*SEATS, "peer-6", "peer-7"}


async def test_a_hub_is_offered_the_set_once_and_again_where_it_refused(target):
    target.submissions.relays = ("hub-1", "hub-2")
    target.holders.refusing = {"hub-2"}
    await pushing(target)
    assert {"hub-1", "hub-2"} < set(target.holders.offers[0])
    await target.see(people(AT + 2, 2), OPEN)
    assert target.holders.offers[1:] == [["hub-2"]]


async def test_a_hub_that_took_a_set_is_offered_it_again_and_that_is_no_news(target):
    """It may have lost its folder; a hub that has the set answers without asking for its bytes."""
    target.submissions.relays = ("hub-1",)
    await pushing(target)
    for slot in range(AT + 1, AT + 2 * MAX_PAUSE_SLOTS + 1):
        await target.see(people(slot, slot), OPEN)
    assert target.holders.offers[1:] == [["hub-1"], ["hub-1"]]
    assert len(target.named("openings_pushed")) == 1


async def test_nobody_is_offered_a_set_twice_that_it_has_taken(target):
    await pushing(target)
    for slot in range(AT + 1, AT + 20):
        await target.see(people(slot, slot), OPEN)
    assert len(target.holders.offers) == 1


async def test_a_seat_that_refuses_is_asked_again_after_pauses_that_double(target):
    """It may learn of the audit a few slots later, or be cut off for a while."""
    target.holders.refusing = {"peer-2"}
    await pushing(target)
    tries = []
    for slot in range(AT + 1, AT + 16):
        before = len(target.holders.offers)
        await target.see(people(slot, slot), OPEN)
        if len(target.holders.offers) > before:
            assert target.holders.offers[-1] == ["peer-2"]
            tries.append(slot - AT)
    assert tries == [2, 6, 14]


async def test_a_member_that_refuses_is_replaced_by_another(target):
    target.holders.refusing = {"peer-0"}
    view = people(living=range(7))
    target.submissions.endpoints_of[6] = (view.entries[6].owner, "peer-6")
    await target.see(view, OPEN)
    target.start(push_openings(target.witness, OPEN))
    await settle()
    for slot in (AT + 1, AT + 2, AT + 6):
        await target.see(replace(view, slot=slot), OPEN)
    offered = {holder for holders in target.holders.offers for holder in holders}
    assert {"peer-4", "peer-6"} <= offered


async def test_the_extension_and_later_the_jurors_get_it_too(target):
    await pushing(target)
    extended = replace(OPEN, num_seats=5, first_acting=3)
    await target.see(people(AT + 1, 2), extended)
    jurors = (juror(0), juror(3), juror(INDEX))
    case = replace(OPEN, stage=AuditStage.CASE_COMMIT, jurors=jurors, num_jurors=3)
    target.holders.refusing = {"peer-0"}
    await target.see(people(AT + 2, 3), case)
    taken = {holder for holders in target.holders.offers for holder in holders}
    assert taken == {f"peer-{n}" for n in range(5)}, "not to ourselves"


@pytest.mark.parametrize("stage", [AuditStage.REVEAL, AuditStage.SETTLED, AuditStage.DECIDED])
async def test_who_has_spoken_needs_no_set_but_two_members_keep_one(target, stage):
    await pushing(target, replace(OPEN, stage=stage))
    (offered,) = target.holders.offers
    assert set(offered) == {"peer-0", "peer-4"}


async def test_a_closed_audit_asks_for_nothing(target):
    await pushing(target)
    target.node.audits = []
    await target.see(people(AT + 30, 30))
    assert len(target.holders.offers) == 1


async def test_seats_that_have_it_pass_it_on_to_each_other_a_little_later(judge):
    judge.save_payload()
    judge.audits.openings.keep(AUDIT.sampled, AUDIT.root, AUDIT.data, durable=False)
    await pushing(judge)
    for slot in range(AT + 1, AT + PASS_ON_SLOTS):
        await judge.see(people(slot, slot), OPEN)
    assert judge.holders.offers == []
    await judge.see(people(AT + PASS_ON_SLOTS, 99), OPEN)
    assert judge.holders.offers == [["peer-1", "peer-3"]]


def to_push(driver, view):
    return [audit.key for audit in sets_to_push(driver.witness, view)]


async def test_only_targets_seats_and_jurors_push_what_they_hold(judge):
    await judge.see(people(), OPEN)
    assert to_push(judge, people()) == [], "it does not hold it yet"
    judge.audits.openings.keep(AUDIT.sampled, AUDIT.root, AUDIT.data, durable=False)
    assert to_push(judge, people()) == [OPEN.key]
    stranger = replace(OPEN, seats=(seat(1), seat(3), seat(4)))
    await judge.see(people(AT, 2), stranger)
    assert to_push(judge, people()) == []
    redrawn = replace(OPEN, openings_root=b"2" * 32)
    await judge.see(people(AT, 3), redrawn)
    assert to_push(judge, people()) == [], "a fork drew other tiles"


@pytest.mark.parametrize("stage", AuditStage)
async def test_a_judge_keeps_pushing_until_all_have_spoken(judge, stage):
    judge.audits.openings.keep(AUDIT.sampled, AUDIT.root, AUDIT.data, durable=False)
    jurors = (juror(0), juror(JUDGE))
    await judge.see(people(), replace(OPEN, stage=stage, jurors=jurors, num_jurors=2))
    assert to_push(judge, people()) == ([OPEN.key] if stage in MAY_BE_SHOWN else [])


@pytest.mark.parametrize("stage", AuditStage)
async def test_a_target_pushes_whatever_the_stage(target, stage):
    await target.see(people(), replace(OPEN, stage=stage))
    assert to_push(target, people()) == [OPEN.key]


def sizes(driver):
    return set(driver.audits.openings.welcome(AUDIT.root))


async def test_a_set_is_wanted_while_its_audit_is_open_and_we_know_the_header(judge):
    await judge.see(people(), OPEN)
    want_openings(judge.witness, people())
    assert sizes(judge) == set(), "its size is not known yet"
    judge.save_payload()
    want_openings(judge.witness, people())
    assert sizes(judge) == {len(AUDIT.data)}
    judge.node.audits = []
    await judge.see(people(AT, 2))
    want_openings(judge.witness, people())
    assert sizes(judge) == set()


@pytest.mark.parametrize(
    "changes",
    [
        {"openings_root": bytes(32)},
        {"kind": AuditKind.PAYLOAD},
        {"header_hash": b"?" * 32},
    ],
    ids=["nothing posted", "no case of work", "another payload"],
)
async def test_nothing_else_is_wanted(judge, changes):
    judge.save_payload()
    await judge.see(people(), replace(OPEN, **changes))
    want_openings(judge.witness, people())
    assert judge.audits.openings.wanted == ()


async def test_a_set_that_we_hold_is_not_wanted_again(judge):
    judge.save_payload()
    judge.audits.openings.keep(AUDIT.sampled, AUDIT.root, AUDIT.data, durable=False)
    await judge.see(people(), OPEN)
    want_openings(judge.witness, people())
    assert judge.audits.openings.wanted == ()


async def test_a_place_in_the_audit_makes_a_set_ours(judge):
    judge.save_payload()
    stranger = replace(OPEN, seats=(seat(1), seat(3), seat(4)))
    for sequence, audit, is_ours in ((1, stranger, False), (2, OPEN, True), (3, stranger, False)):
        await judge.see(people(AT, sequence), audit)
        want_openings(judge.witness, people())
        (found,) = judge.audits.openings.wanted
        assert found.is_ours == is_ours, audit.seats
