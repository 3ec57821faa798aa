"""`set_endpoint`: an announced address changes at once, by its owner, while it is a member."""

import pytest
from support.program.joining import participant
from support.program.rounds import RoundDriver
from support.program.swapped import swapped

from troth_coordinator.chain import instructions as make


def announced(driver, index=0):
    return participant(driver, driver.owners[index]).endpoint


def test_an_endpoint_changes_at_once_within_a_round_too():
    driver = RoundDriver(4)
    driver.start()
    owner = driver.owners[0]
    for endpoint in ("http://203.0.113.7:9000", "e" * 96, ""):
        built = make.set_endpoint(driver.at, owner.pubkey(), endpoint)
        changed = driver.send(built, owner).event("EndpointSet")
        assert changed.index == 0
        assert changed.endpoint == endpoint
        assert announced(driver) == endpoint
    driver.play()


@pytest.mark.parametrize("endpoint", ["e" * 97, "http://a b:1", "http://é:1", "a\nb", "\x1b[31m"])
def test_an_endpoint_that_a_terminal_would_not_print_as_it_is_is_refused(endpoint):
    driver = RoundDriver(2)
    owner = driver.owners[0]
    wrong = make.set_endpoint(driver.at, owner.pubkey(), endpoint)
    assert driver.refused(wrong, owner) == "InvalidText"


def test_an_endpoint_is_that_of_a_member_and_its_owner_alone_changes_it():
    driver = RoundDriver(3)
    before = announced(driver, 1)
    stranger = make.set_endpoint(driver.at, driver.owners[0].pubkey(), "http://a:1")
    keys = [meta.pubkey for meta in stranger.accounts]
    place = keys.index(driver.at.participant(driver.owners[0].pubkey()))
    foreign = swapped(stranger, place, driver.at.participant(driver.owners[1].pubkey()))
    assert driver.refused(foreign, driver.owners[0]) == "WrongOwner"
    driver.leave(1)
    gone = make.set_endpoint(driver.at, driver.owners[1].pubkey(), "http://a:1")
    assert driver.refused(gone, driver.owners[1]) == "NotJoined"
    assert announced(driver, 1) == before
