"""Whole runs whose witnesses judge: dishonest variants of the client, and what came of them.

A variant is the honest client behind other doors: its clock computes something else than it was
asked for, or its book of verdicts forgets. Everything but the cheat is right.
Next: support/program/cases.py for attacks without clients.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from integration.inprocess_doors import Doom, Killed, Wrapped
from integration.inprocess_support import (
    WINDOWS,
    Chronicle,
    assert_conserved,
    raise_failures,
)
from solders.keypair import Keypair

from support.program.audits import INCINERATOR
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_client.audit.judgement import Evidence, judge_work
from troth_client.participant.assembly import Ports
from troth_coordinator.chain.case_instructions import (
    NO_SUBJECT,
    Claim,
    open_case,
    release_escrow,
)
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.audits import Step, due_step, now, run_clock
from troth_coordinator.rules.view import EntryView
from troth_simulation.in_process import InProcessRun, Member

STAKE, REWARD, FEE = 100_000_000, 1_000_000, 200_000
RECOMPUTE = 600_000
BOND = 5_000_000
JUDGED = {
    **WINDOWS,
    "recompute_cost": RECOMPUTE,
    "p_new_ppm": 1_000_000,
    "p_base_ppm": 60_000,
    "audit_cap": 1,
}
"""Short windows, one audit a round; ten recomputations cost less than a tenth of the stake."""
UNSAMPLED = {**JUDGED, "p_new_ppm": 0, "p_base_ppm": 0}
"""Nobody is audited but by request or accusation."""
SIX = ("ada", "bob", "cyd", "dan", "eve", "fay")
PATIENCE_SLOTS = 3_000
"""Far more than a run of these windows lasts with all of its audits."""

Judge = Callable[..., Verdict]
Said = Callable[[Evidence, Verdict], VerdictKind | None]
"""What a witness says instead of what it found; None: what it found."""


def computing(doors: Ports, swaps: Mapping[Callable[..., Any], Callable[..., Any]]) -> Ports:
    """The same doors, but the clock computes other functions than it is asked for."""

    async def compute(function, *args, **kwargs):
        return await doors.clock.compute(swaps.get(function, function), *args, **kwargs)

    return replace(doors, clock=Wrapped(doors.clock, compute=compute))


def saying(said: Said) -> Judge:
    """A judge that recomputes as it should and then says something else."""

    def judge(evidence, gradient, config):
        honest = judge_work(evidence, gradient, config)
        kind = said(evidence, honest)
        return honest if kind is None else Verdict(kind, Reason.WORK_DIFFERS)

    return judge


async def until_event(run: InProcessRun, told_of: Chronicle, name: str, **fields: object) -> Any:
    """Let slots pass until the program has said so; return the first such event."""
    run.clock.join()
    try:
        for _ in range(PATIENCE_SLOTS):
            found = told_of.named(name, **fields)
            if found:
                return found[0]
            raise_failures(run)
            assert any(one.is_running for one in run.members), "nobody is left to do it"
            await run.clock.wait()
    finally:
        run.clock.leave()
    raise AssertionError(f"no {name} {fields}")


async def accuse(
    run: InProcessRun, round_: int, target: Member, kind: AuditKind, subject: int | None = None
) -> tuple[Keypair, int]:
    """A stranger opens a case with a bond; returns it and what it had before."""
    stranger = Keypair.from_seed(b"stranger".ljust(32, b"."))
    run.chain.airdrop(stranger.pubkey(), 10**9)
    before = run.balance(stranger.pubkey())
    named = NO_SUBJECT if subject is None else subject
    case = open_case(run.at, stranger.pubkey(), Claim(round_, target.index, kind, named))
    await run.client.send([case], [stranger])
    return stranger, before


async def released(run: InProcessRun, told_of: Chronicle, settled: Any) -> Any:
    """Wait for the end of a case, and close it if its members are gone by then; the event of it."""
    about = {name: getattr(settled, name) for name in ("round", "target", "audit_kind")}
    run.clock.join()
    try:
        for _ in range(PATIENCE_SLOTS):
            for event in told_of.named("AuditClosed", **about):
                return event
            await _release(run, tuple(about.values()))
            await run.clock.wait()
    finally:
        run.clock.leave()
    raise AssertionError(f"still open: {about}")


async def _release(run: InProcessRun, key: tuple[int, ...]) -> None:
    view = await run.view()
    clock = run_clock(view.run, view.slot)
    for audit in await run.client.find_audits(run.at.run):
        due = due_step(now(audit, view.run.params, clock), view.run, view.slot)
        if audit.key == key and due is Step.RELEASE:
            step = release_escrow(run.at, run.authority.pubkey(), audit)
            await run.client.send([step], [run.authority])


async def entry_of(run: InProcessRun, one: Member) -> EntryView:
    return (await run.view()).entries[one.index]


async def assert_only_paid(run: InProcessRun, told_of: Chronicle, payers: list[Member]) -> None:
    """Nobody but these lost a lamport of stake, the books balance, and what burned is burned."""
    await assert_conserved(run)
    view = await run.view()
    named = {one.index for one in payers}
    for one in run.members:
        entry = view.entries[one.index]
        if one.index not in named:
            assert entry.stake + entry.unbonding == STAKE, one.name
            assert entry.strikes == 0, one.name
    penalised = told_of.named("Penalised")
    assert {event.index for event in penalised} <= named
    burned = sum(event.burned for event in (*penalised, *told_of.named("AuditClosed")))
    burned += sum(event.bond_burned for event in told_of.named("CaseSettled"))
    assert run.balance(INCINERATOR) == burned


def mortal(run: InProcessRun, name: str, last: str) -> Doom:
    """Let one member's first process be killed right after it has told of this."""
    doom = Doom(run.clock, where=last)

    def wrap(one, doors):
        def emit(event, /, **fields):
            doors.events.emit(event, **fields)
            if event == last and not doom.is_dead:
                doom.die()

        is_first = one.name == name and not doom.is_dead
        return replace(doors, events=Wrapped(doors.events, emit=emit)) if is_first else doors

    run.wrap = wrap
    return doom


async def death_of(one: Member) -> None:
    """Wait until a member's process was killed."""
    (found,) = await asyncio.gather(one.task, return_exceptions=True)
    assert isinstance(found, Killed), found
