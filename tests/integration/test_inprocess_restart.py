"""A restart whose weights take longer to read than a whole window; hidden verdicts come first.

The order after a start: first the reveals, then opening sets, then the rest.
"""

from dataclasses import replace

import pytest
from support.attacks.judges import (
    JUDGED,
    SIX,
    STAKE,
    UNSAMPLED,
    accuse,
    death_of,
    entry_of,
    mortal,
    until_event,
)
from support.hourglass import Hourglass, SlowRuntime
from support.ports import Wrapped
from support.runs import Chronicle, assert_conserved, events_of, member, start_members, until_round

from troth_client.participant.assembly import assemble
from troth_coordinator.rules.audit_view import AuditKind

SLOTS = 60
"""Three reveal windows. A new seat is not missed meanwhile: its commit window is twice as long."""
AWAY = 3
"""Slots between the death and the restart."""


async def restart(run, one, death, wrap):
    """Start a killed member again, with its ports wrapped."""
    death.release_clock()
    run.runtime.join()
    for _ in range(AWAY):
        await run.runtime.wait()
    run.runtime.leave()
    run.wrap = wrap
    one.events.emit("life_ended")
    await run.start(one)


async def restart_slowly(run, one, death):
    """Start a killed member again; reading its weights takes `SLOTS` slots, and so does a check."""
    hourglass = Hourglass(run.chain)

    def slowed(member, ports):
        return replace(ports, runtime=SlowRuntime(ports.runtime, hourglass, assemble, SLOTS))

    await restart(run, one, death, slowed)


def since_restart(one):
    """The names of the events of the second life, in order."""
    names = [event["event"] for event in one.events.events]
    return names[names.index("life_ended") :]


@pytest.mark.long(reason="a slow restart; test_dishonest_witnesses.py has a quick one")
async def test_a_verdict_is_revealed_before_the_weights_are_read(run_factory):
    """Fay's machine dies right after its commit; its weights take longer than both windows.

    Hiding a committed verdict is the dearest fault of all. The reveal needs the file with the salt
    and nothing else, so it is sent first: fay is paid like the others. Threat T46.
    """
    # Fay's own payload may be drawn meanwhile, and openings come after the weights.
    windows = {"verdict_commit_slots": 2 * SLOTS, "openings_slots": 3 * SLOTS}
    run = await run_factory.create(10, **JUDGED | windows)
    death = mortal(run, "fay", "verdict_committed")
    await start_members(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    await death_of(fay)
    committed, *_ = events_of(run, "fay", "verdict_committed")
    about = {"round": committed["round"], "target": committed["target"]}
    await restart_slowly(run, fay, death)
    again = since_restart(fay)
    assert again.index("verdict_revealed") < again.index("apply_path"), "weights are read later"
    settled = await until_event(run, tale, "AuditSettled", **about)
    assert len(tale.named("VerdictRevealed", index=fay.index, **about)) == 1
    assert settled.paid >> fay.index & 1
    assert (await entry_of(run, fay)).seat_faults == 0
    assert not tale.named("Penalised", index=fay.index)


@pytest.mark.long(reason="the same as for a verdict, on a jury")
async def test_a_vote_of_a_juror_is_revealed_before_the_weights_are_read(run_factory):
    """The same on a jury. Threat T46."""
    run = await run_factory.create(8, **UNSAMPLED)
    death = mortal(run, "fay", "vote_committed")
    await start_members(run, SIX)
    ada, fay, tale = member(run, "ada"), member(run, "fay"), Chronicle(run)
    await until_round(run, 3)
    await accuse(run, 1, ada, AuditKind.ROOT)
    await death_of(fay)
    await restart_slowly(run, fay, death)
    again = since_restart(fay)
    assert again.index("vote_revealed") < again.index("apply_path"), "weights are read later"
    settled = await until_event(run, tale, "CaseSettled", target=ada.index)
    assert len(tale.named("JurorVoteRevealed", index=fay.index)) == 1
    assert settled.paid >> fay.index & 1
    assert (await entry_of(run, fay)).seat_faults == 0
    # Its payload of the round in which it died may be out of reach: a strike, which takes no stake.
    await assert_conserved(run)
    assert (await entry_of(run, fay)).stake == STAKE
    assert tale.named("Penalised") == []


async def test_ones_own_payload_is_served_before_the_weights_are_checked(run_factory):
    """The others gather it just now, and checking and replaying weights takes long.

    It came with the round before, and our own payload only once we took part in the round again.
    """
    run = await run_factory.create(3, **UNSAMPLED)
    death = mortal(run, "bob", "gathered", round_=1)
    await start_members(run, ("ada", "bob", "cyd"))
    bob, released = member(run, "bob"), []
    await death_of(bob)

    def noting(one, ports):
        def release(round_):
            released.append(int(round_))
            ports.transport.release(round_)

        wrapped = Wrapped(ports.transport, release=release)
        return replace(ports, transport=wrapped) if one is bob else ports

    await restart(run, bob, death, noting)
    await until_round(run, 2)
    assert released[0] == 1
