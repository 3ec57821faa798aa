"""A join that is only simulated: the program names every reason, and nothing changes."""

import pytest
from support.chain import GENESIS_ROOT, SOL, World, key

from troth_coordinator.chain.errors import InsufficientFundsError, ProgramRefusedError
from troth_coordinator.chain.operations import JoinOffer, Owner
from troth_coordinator.rules.view import Status


async def test_a_simulated_join_names_the_place_and_changes_nothing():
    world = World()
    at = (await world.create(capacity=3)).at
    await world.join(at, "alice")
    bob = Owner(world.client, at, world.wallet("owner", "bob"))
    before, session = world.balance(bob.key.pubkey()), key("session", "bob").pubkey()
    assert await bob.foretell_join(JoinOffer(session, 3, "http://bob", SOL, SOL)) == 1
    assert world.balance(bob.key.pubkey()) == before
    assert await world.client.read_participant(at.run, bob.key.pubkey()) is None
    index, _sent = await bob.join_run(JoinOffer(session, 3, "http://bob"))
    assert index == 1


async def test_a_simulated_join_is_refused_by_name():
    world = World()
    authority = await world.create(admission="allowlist")
    alice = Owner(world.client, authority.at, world.wallet("owner", "alice"))
    session = key("session", "alice").pubkey()
    with pytest.raises(ProgramRefusedError) as caught:
        await alice.foretell_join(JoinOffer(session, 3, "http://alice"))
    assert caught.value.name == "NotAdmitted"
    poor = Owner(world.client, authority.at, world.wallet("owner", "poor", lamports=SOL // 100))
    await authority.admit(poor.key.pubkey())
    with pytest.raises((InsufficientFundsError, ProgramRefusedError)) as caught:
        await poor.foretell_join(JoinOffer(session, 3, "http://poor"))
    assert "nsufficient" in repr(caught.value)


async def test_an_owner_that_left_a_moment_ago_is_told_by_simulation():
    world = World()
    running = await world.start(4)
    owner, _session = running.peers[3]
    await owner.leave_run()
    for number, (_owner, session) in enumerate(running.peers):
        vote_ = running.vote(number, 0, GENESIS_ROOT)
        await session.commit_payload(0, bytes([number + 1] * 32), vote_)
    await running.crank.advance_phase(0)
    for _owner, session in running.peers:
        await session.attest(0, 0b1111, bytes(64))
    seen = await world.client.snapshot(running.at.run)
    await running.crank.close_round(seen.run, GENESIS_ROOT)
    entries = (await world.client.snapshot(running.at.run)).entries
    assert entries[3].status == Status.LEFT
    with pytest.raises(ProgramRefusedError) as caught:
        await owner.foretell_join(JoinOffer(key("session", "new").pubkey(), 3, "http://again"))
    assert caught.value.name == "AlreadyJoined"
