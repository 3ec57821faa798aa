"""Witnesses that lie, hide or sleep, among honest clients in one process."""

from dataclasses import replace

import numpy as np
import pytest
from support.attacks.judges import (
    FEE,
    JUDGED,
    SIX,
    UNSAMPLED,
    accuse,
    assert_only_paid,
    death_of,
    entry_of,
    mortal,
    saying,
    until_event,
)
from support.fields import assert_fields
from support.ports import Wrapped, refused_by, withheld_by
from support.program.losses import fined_lamports
from support.runs import (
    Chronicle,
    events_of,
    member,
    start_members,
    until_round,
)

from troth_attestation.verdict import VerdictKind
from troth_client.compression.tiles import TileLayout
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import TransactionError
from troth_coordinator.rules.audit_view import AuditKind


def liar(name, judges):
    """Puts another witness's work behind the ports of one member."""
    return lambda one, ports: replace(ports, judges=judges) if one.name == name else ports


async def test_a_lazy_witness_is_outvoted_by_its_sketch_and_pays(run_factory):
    """Fay recomputes nothing, says ok to everything and makes its sketches up.

    An ok costs nothing to say and is nearly always right, so that verdicts alone never find fay.
    Its sketch does: three honest ones agree with each other and differ from it. It earns no fee
    and pays ten recomputations, which burn (P7). Threat T20.
    """

    def nothing(weights, batch):
        tiles = TileLayout.from_shapes({name: w.shape for name, w in weights.items()})
        return np.zeros((tiles.num_tiles, 64, 64), np.float32)

    def lazy(honest):
        says_ok = saying(lambda *_: VerdictKind.OK)(honest)
        return Wrapped(says_ok, gradient=nothing, sketch=lambda *_: tuple(range(64)))

    run = await run_factory.create(12, **JUDGED)
    run.wrap = liar("fay", lazy)
    await start_members(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    paid = await until_event(run, tale, "Penalised")
    assert_fields(
        paid,
        index=fay.index,
        fault=7,
        burned=2 * FEE,
    )
    (settled,) = tale.named("AuditSettled", round=paid.round, target=paid.target)
    assert_fields(settled, "the target is cleared all the same", outcome=1, fee=FEE)
    assert not settled.paid >> fay.index & 1 and settled.paid.bit_count() == 4
    assert fined_lamports(paid) == 2 * FEE
    await assert_only_paid(run, tale, [fay])


async def test_one_framing_witness_costs_its_victim_nothing(run_factory):
    """Fay calls the work of everybody a mismatch, to see somebody else slashed.

    Two more are seated, four agree that the work is right, and the audit ends there: nobody is
    accused, no stake moves and no reward is undone. Threat T23.
    """
    run = await run_factory.create(12, **JUDGED)
    run.wrap = liar("fay", saying(lambda *_: VerdictKind.MISMATCH))
    await start_members(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    said = await until_event(run, tale, "VerdictRevealed", verdict=int(VerdictKind.MISMATCH))
    assert said.index == fay.index
    about = {"round": said.round, "target": said.target}
    settled = await until_event(run, tale, "AuditSettled", **about)
    assert_fields(settled, outcome=1, reward_undone=0, is_strike=False)
    assert len(tale.named("AuditExtended", **about)) == 1
    await assert_only_paid(run, tale, [])


def never_revealing(ports):
    """The same ports, but no verdict is ever revealed through them."""
    names = program_codec().instruction_names

    async def send(instructions, signers, watch=None):
        if any(names[bytes(one.data)[:8]] == "reveal_verdict" for one in instructions):
            raise TransactionError("reveal", "to be sent", "kept back", "It stays hidden.")
        return await ports.chain.send(instructions, signers)

    return replace(ports, chain=Wrapped(ports.chain, send=send))


async def test_whoever_hides_its_verdict_pays_two_fees_the_first_time(run_factory):
    """Fay commits, waits for the others' reveals, and does not like what it had said.

    An unrevealed commit costs two fees the first time, so that a crash is not ruinous (P6). The
    other seats settle without it: a hidden verdict counts for nobody. Threat T46.
    """
    run = await run_factory.create(12, **JUDGED)
    run.wrap = lambda one, ports: never_revealing(ports) if one.name == "fay" else ports
    await start_members(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    paid = await until_event(run, tale, "Penalised")
    assert events_of(run, "fay", "verdict_committed")
    assert not events_of(run, "fay", "verdict_revealed")
    assert_fields(paid, index=fay.index, fault=6, burned=2 * FEE)
    assert fined_lamports(paid) == 2 * FEE
    (settled,) = tale.named("AuditSettled", round=paid.round, target=paid.target)
    assert settled.outcome == 1
    assert settled.paid.bit_count() == 4
    entry = await entry_of(run, fay)
    assert_fields(entry, seat_faults=1)
    await assert_only_paid(run, tale, [fay])


async def test_a_witness_killed_between_commit_and_reveal_reveals_after_its_restart(run_factory):
    """Somebody's machine dies in the moment after its commit has landed.

    Its verdict is on disk, with its salt, since before the commit was sent. It comes back within
    the window and reveals exactly that verdict: it is paid like the others. Threat T46.
    """
    run = await run_factory.create(10, **JUDGED)
    death = mortal(run, "fay", "verdict_committed")
    await start_members(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    await death_of(fay)
    committed, *_ = events_of(run, "fay", "verdict_committed")
    about = {"round": committed["round"], "target": committed["target"]}
    death.release_clock()
    run.runtime.join()
    for _ in range(5):
        await run.runtime.wait()
    assert not tale.named("VerdictRevealed", index=fay.index)
    await run.start(fay)
    run.runtime.leave()
    settled = await until_event(run, tale, "AuditSettled", **about)
    assert len(tale.named("VerdictCommitted", index=fay.index, **about)) == 1
    assert len(tale.named("VerdictRevealed", index=fay.index, **about)) == 1
    assert settled.outcome == 1 and settled.paid >> fay.index & 1
    assert (await entry_of(run, fay)).seat_faults == 0
    await assert_only_paid(run, tale, [])


@pytest.mark.long(reason="the same as for a witness, on a jury")
async def test_a_juror_killed_between_its_commit_and_its_reveal_votes_all_the_same(run_factory):
    """The same on a jury: a juror dies when its hidden vote has landed.

    Its vote, too, lay on the disk before it was sent. It is revealed after the restart, as it was,
    and paid; the case is decided by five. Threat T46.
    """
    run = await run_factory.create(8, **UNSAMPLED)
    death = mortal(run, "fay", "vote_committed")
    await start_members(run, SIX)
    ada, fay, tale = member(run, "ada"), member(run, "fay"), Chronicle(run)
    await until_round(run, 3)
    await accuse(run, 1, ada, AuditKind.ROOT)
    await death_of(fay)
    death.release_clock()
    run.runtime.join()
    for _ in range(3):
        await run.runtime.wait()
    assert not tale.named("JurorVoteRevealed", index=fay.index)
    await run.start(fay)
    run.runtime.leave()
    settled = await until_event(run, tale, "CaseSettled", target=ada.index)
    assert len(tale.named("JurorVoteCommitted", index=fay.index)) == 1
    assert len(tale.named("JurorVoteRevealed", index=fay.index)) == 1
    assert settled.outcome == 2
    assert settled.paid.bit_count() == 5
    assert (await entry_of(run, fay)).seat_faults == 0
    await assert_only_paid(run, tale, [])


@pytest.mark.long(reason="another lone verdict; make test has a framing witness")
async def test_a_false_unavailable_delays_and_earns_nothing(run_factory):
    """Fay says of everybody that nobody served the openings, to spare itself the work.

    Nobody can prove that it was served, so this is never a fault. It decides nothing either: two
    more seats judge, the target is cleared, and fay is not paid. Threat T19.
    """
    run = await run_factory.create(12, **JUDGED)
    run.wrap = liar("fay", saying(lambda *_: VerdictKind.UNAVAILABLE))
    await start_members(run, SIX)
    fay, tale = member(run, "fay"), Chronicle(run)
    said = await until_event(run, tale, "VerdictRevealed", index=fay.index)
    assert said.verdict == VerdictKind.UNAVAILABLE
    about = {"round": said.round, "target": said.target}
    settled = await until_event(run, tale, "AuditSettled", **about)
    assert_fields(settled, outcome=1, reward_undone=0)
    assert settled.paid.bit_count() == 4 and not settled.paid >> fay.index & 1
    assert not tale.named("Penalised")
    await assert_only_paid(run, tale, [])


async def test_a_starved_seat_is_served_by_the_others(run_factory):
    """A target shows its openings to every seat but one, which it hopes to see fined as silent.

    The seats that have the openings serve them: their bytes are those under the root on chain,
    whoever gives them. The starved seat judges like the others. Threat T45.
    """
    run = await run_factory.create(12, **JUDGED)
    tale, refused = Chronicle(run), []

    def is_target(name, blob):
        posted = tale.named("OpeningsPosted", root=blob.key)
        return bool(posted) and name == run.members[posted[0].target].name

    def starves(name, blob):
        if is_target(name, blob):
            (posted,) = tale.named("OpeningsPosted", root=blob.key)
            refused.append(f"round {posted.round}, target {posted.target}")
        return is_target(name, blob)

    def wrap(one, ports):
        if one.name == "fay":
            return refused_by(ports, starves)
        return withheld_by(ports, lambda holder, blob: holder == "fay" and starves(one.name, blob))

    run.wrap = wrap
    await start_members(run, SIX)
    fay = member(run, "fay")
    said = await until_event(run, tale, "VerdictRevealed", index=fay.index)
    assert f"round {said.round}, target {said.target}" in refused
    assert said.verdict == VerdictKind.OK
    settled = await until_event(run, tale, "AuditSettled", round=said.round, target=said.target)
    assert settled.outcome == 1 and settled.paid >> fay.index & 1
    await assert_only_paid(run, tale, [])
