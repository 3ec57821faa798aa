"""The events of a run give its chain hash, and no other events do."""

from dataclasses import replace

import pytest
from support.program.rounds import RoundDriver

from troth_coordinator.chain.event_base import Event
from troth_coordinator.ledger.errors import LedgerError, LedgerHashError, LedgerOrderError
from troth_coordinator.ledger.fold import Fold


@pytest.fixture(scope="module")
def driver() -> RoundDriver:
    made = RoundDriver(4, max_rounds=3, checkpoint_every=3, keep_rounds=2)
    made.start()
    made.play(3)
    made.cool_down()
    return made


@pytest.fixture
def events(driver: RoundDriver) -> list[Event]:
    return list(driver.ledger.events)


def place(events: list[Event], name: str) -> int:
    return next(at for at, event in enumerate(events) if event.name == name)


def test_events_from_the_beginning_give_the_hash_of_the_run(
    driver: RoundDriver, events: list[Event]
) -> None:
    fold = Fold()
    fold.absorb(events)
    assert fold.hash == driver.run.chain_hash
    assert fold.next_sequence == driver.run.event_sequence


@pytest.mark.parametrize("name", ["RunFunded", "RoundOpened", "RoundSettled"])
def test_a_hole_is_found_at_the_next_event(events: list[Event], name: str) -> None:
    del events[place(events, name)]
    with pytest.raises(LedgerOrderError, match="expected event number"):
        Fold().absorb(events)


@pytest.mark.parametrize("name", ["PayloadCommitted", "Attested"])
def test_a_missing_commit_or_attestation_is_found_at_the_close(
    events: list[Event], name: str
) -> None:
    del events[place(events, name)]
    with pytest.raises(LedgerHashError, match="close of round 0"):
        Fold().absorb(events)


def test_swapped_events_are_found(events: list[Event]) -> None:
    first = place(events, "RoundSettled")
    events[first : first + 2] = reversed(events[first : first + 2])
    with pytest.raises(LedgerOrderError, match="RoundOpened"):
        Fold().absorb(events)


@pytest.mark.parametrize("name", ["PayloadCommitted", "Attested"])
def test_a_second_commit_or_attestation_is_refused(events: list[Event], name: str) -> None:
    at = place(events, name)
    events.insert(at, events[at])
    with pytest.raises(LedgerOrderError, match="found a second one"):
        Fold().absorb(events)


def test_every_changed_byte_before_a_close_is_found(events: list[Event]) -> None:
    last = max(at for at, event in enumerate(events) if event.name == "RoundClosed")
    absorbed = [at for at in range(last) if events[at].kind is not None]
    assert len(absorbed) > 10
    for at in absorbed:
        body = events[at].body
        changed = bytes([*body[:-1], body[-1] ^ 1])
        forged = [*events[:at], replace(events[at], body=changed), *events[at + 1 :]]
        with pytest.raises(LedgerHashError):
            Fold().absorb(forged)


def test_a_forged_tail_has_another_hash_than_the_run(
    driver: RoundDriver, events: list[Event]
) -> None:
    assert events[-1].name != "RoundClosed"
    body = events[-1].body
    events[-1] = replace(events[-1], body=bytes([body[0] ^ 1]) + body[1:])
    fold = Fold()
    fold.absorb(events)
    assert fold.next_sequence == driver.run.event_sequence
    assert fold.hash != driver.run.chain_hash


def test_a_refused_transaction_changes_nothing(events: list[Event]) -> None:
    fold = Fold()
    fold.absorb(events[:3])
    before = fold.hash
    with pytest.raises(LedgerError):
        fold.absorb([events[3], events[3]])
    assert fold.hash == before
    fold.absorb(events[3:])
    assert fold.next_sequence > 3
