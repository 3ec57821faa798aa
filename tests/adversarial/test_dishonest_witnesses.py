"""Witnesses that lie, hide or sleep, among honest clients in one process."""

import numpy as np
from integration.inprocess_doors import Wrapped, refused_by
from integration.inprocess_support import (
    Chronicle,
    enter,
    events_of,
    member,
    until_round,
    with_peer,
)
from support.attacks.judges import (
    FEE,
    JUDGED,
    RECOMPUTE,
    SIX,
    STAKE,
    UNSAMPLED,
    accuse,
    assert_only_paid,
    computing,
    death_of,
    entry_of,
    mortal,
    saying,
    until_event,
)
from support.fields import assert_fields

from troth_attestation.sketch import sketch
from troth_attestation.verdict import VerdictKind
from troth_client.audit.judgement import judge_work
from troth_client.audit.recompute import recompute
from troth_client.compression.tiles import TileLayout
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.view import Status


def liar(name, swaps):
    """Wraps the doors of one member."""
    return lambda one, doors: computing(doors, swaps) if one.name == name else doors


async def test_a_lazy_witness_is_outvoted_by_its_sketch_and_pays(theatre):
    """Fay recomputes nothing, says ok to everything and makes its sketches up.

    An ok costs nothing to say and is nearly always right, so that verdicts alone never find fay.
    Its sketch does: three honest ones agree with each other and differ from it. It earns no fee
    and pays ten recomputations, half to the treasury, half burned (P7). Threat T20.
    """

    def nothing(config, weights, batch, device):
        tiles = TileLayout.from_shapes({name: w.shape for name, w in weights.items()})
        return np.zeros((tiles.num_tiles, 64, 64), np.float32)

    run = await theatre.create(12, **JUDGED)
    made_up = {judge_work: saying(lambda *_: VerdictKind.OK), sketch: lambda *_: tuple(range(64))}
    run.wrap = liar("fay", {recompute: nothing, **made_up})
    await enter(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    paid = await until_event(run, tale, "Penalised")
    assert_fields(
        paid,
        index=fay.index,
        fault=7,
        stake=10 * RECOMPUTE,
        unbonding=0,
        unvested=0,
        treasury=5 * RECOMPUTE,
        burned=5 * RECOMPUTE,
    )
    (settled,) = tale.named("AuditSettled", round=paid.round, target=paid.target)
    assert_fields(settled, "the target is cleared all the same", outcome=1, fee=FEE)
    assert not settled.paid >> fay.index & 1 and settled.paid.bit_count() == 4
    entry = await entry_of(run, fay)
    assert_fields(entry, stake=STAKE - 10 * RECOMPUTE, status=Status.INACTIVE)
    await assert_only_paid(run, tale, [fay])


async def test_one_framing_witness_costs_its_victim_nothing(theatre):
    """Fay calls the work of everybody a mismatch, to see somebody else slashed.

    Two more are seated, four agree that the work is right, and the audit ends there: nobody is
    accused, no stake moves and no reward is undone. Threat T23.
    """
    run = await theatre.create(12, **JUDGED)
    run.wrap = liar("fay", {judge_work: saying(lambda *_: VerdictKind.MISMATCH)})
    await enter(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    said = await until_event(run, tale, "VerdictRevealed", verdict=int(VerdictKind.MISMATCH))
    assert said.index == fay.index
    about = {"round": said.round, "target": said.target}
    settled = await until_event(run, tale, "AuditSettled", **about)
    assert_fields(settled, outcome=1, reward_undone=0, is_strike=False)
    assert len(tale.named("AuditExtended", **about)) == 1
    await assert_only_paid(run, tale, [])


async def test_whoever_hides_its_verdict_pays_what_lying_would_have_cost(theatre):
    """Fay commits, waits for the others' reveals, and does not like what it had said.

    An unrevealed commit pays the most that any verdict could have cost: here a tenth of the stake,
    which is more than ten recomputations (P6). The other seats settle without it. Threat T46.
    """
    run = await theatre.create(12, **JUDGED)
    await enter(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    with_peer(fay, verdicts=Wrapped(fay.here.verdicts, find=lambda duty: None))
    paid = await until_event(run, tale, "Penalised")
    assert events_of(run, "fay", "verdict_committed")
    assert not events_of(run, "fay", "verdict_revealed")
    assert_fields(
        paid, index=fay.index, fault=6, stake=STAKE // 10, treasury=STAKE // 20, burned=STAKE // 20
    )
    (settled,) = tale.named("AuditSettled", round=paid.round, target=paid.target)
    assert settled.outcome == 1
    assert settled.paid.bit_count() == 4
    entry = await entry_of(run, fay)
    assert_fields(entry, stake=STAKE - STAKE // 10, seat_faults=1)
    await assert_only_paid(run, tale, [fay])


async def test_a_witness_killed_between_commit_and_reveal_reveals_after_its_restart(theatre):
    """Somebody's machine dies in the moment after its commit has landed.

    What it said lies on the disk, with its salt, since before the commit was sent. It comes back
    within the window and reveals exactly that: it is paid like the others. Threat T46.
    """
    run = await theatre.create(10, **JUDGED)
    doom = mortal(run, "fay", "verdict_committed")
    await enter(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    await death_of(fay)
    (committed,) = events_of(run, "fay", "verdict_committed")
    about = {"round": committed["round"], "target": committed["target"]}
    doom.bury()
    run.clock.join()
    for _ in range(5):
        await run.clock.wait()
    assert not tale.named("VerdictRevealed", index=fay.index)
    await run.start(fay)
    run.clock.leave()
    settled = await until_event(run, tale, "AuditSettled", **about)
    assert len(tale.named("VerdictCommitted", index=fay.index, **about)) == 1
    assert len(tale.named("VerdictRevealed", index=fay.index, **about)) == 1
    assert settled.outcome == 1 and settled.paid >> fay.index & 1
    assert (await entry_of(run, fay)).seat_faults == 0
    await assert_only_paid(run, tale, [])


async def test_a_juror_killed_between_its_commit_and_its_reveal_votes_all_the_same(theatre):
    """The same on the second committee: a juror dies when its hidden vote has landed.

    Its vote, too, lay on the disk before it was sent. It is revealed after the restart, as it was,
    and paid; the case is decided by five. Threat T46.
    """
    run = await theatre.create(8, **UNSAMPLED)
    doom = mortal(run, "fay", "vote_committed")
    await enter(run, SIX)
    ada, fay, tale = member(run, "ada"), member(run, "fay"), Chronicle(run)
    await until_round(run, 3)
    await accuse(run, 1, ada, AuditKind.ROOT)
    await death_of(fay)
    doom.bury()
    run.clock.join()
    for _ in range(3):
        await run.clock.wait()
    assert not tale.named("VoteRevealed", index=fay.index)
    await run.start(fay)
    run.clock.leave()
    settled = await until_event(run, tale, "CaseSettled", target=ada.index)
    assert len(tale.named("VoteCommitted", index=fay.index)) == 1
    assert len(tale.named("VoteRevealed", index=fay.index)) == 1
    assert settled.outcome == 2
    assert settled.paid.bit_count() == 5
    assert (await entry_of(run, fay)).seat_faults == 0
    await assert_only_paid(run, tale, [])


async def test_a_false_unavailable_delays_and_earns_nothing(theatre):
    """Fay says of everybody that nobody served the openings, to spare itself the work.

    Nobody can prove that it was served, so this is never a fault. It decides nothing either: two
    more seats judge, the target is cleared, and fay is not paid. Threat T19.
    """
    run = await theatre.create(12, **JUDGED)
    run.wrap = liar("fay", {judge_work: saying(lambda *_: VerdictKind.UNAVAILABLE)})
    await enter(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    said = await until_event(run, tale, "VerdictRevealed", index=fay.index)
    assert said.verdict == VerdictKind.UNAVAILABLE
    about = {"round": said.round, "target": said.target}
    settled = await until_event(run, tale, "AuditSettled", **about)
    assert_fields(settled, outcome=1, reward_undone=0)
    assert settled.paid.bit_count() == 4 and not settled.paid >> fay.index & 1
    assert not tale.named("Penalised")
    await assert_only_paid(run, tale, [])


async def test_a_starved_seat_is_served_by_the_others(theatre):
    """A target serves its openings to every seat but one, which it hopes to see fined as silent.

    The seats that have the openings serve them: their bytes are those under the root on chain,
    whoever gives them. The starved seat judges like the others. Threat T45.
    """
    run = await theatre.create(12, **JUDGED)
    tale, refused = Chronicle(run), []

    def refuses(holder, blob):
        posted = tale.named("OpeningsPosted", root=blob.key)
        is_target = bool(posted) and holder == run.members[posted[0].target].name
        if is_target:
            refused.append(f"round {posted[0].round}, target {posted[0].target}")
        return is_target

    run.wrap = lambda one, doors: refused_by(doors, refuses) if one.name == "fay" else doors
    await enter(run, SIX)
    fay = member(run, "fay")
    said = await until_event(run, tale, "VerdictRevealed", index=fay.index)
    assert f"round {said.round}, target {said.target}" in refused
    assert said.verdict == VerdictKind.OK
    settled = await until_event(run, tale, "AuditSettled", round=said.round, target=said.target)
    assert settled.outcome == 1 and settled.paid >> fay.index & 1
    await assert_only_paid(run, tale, [])
