"""Whole runs whose witnesses judge: dishonest variants of the client, and what came of them.

A variant is the honest client with other ports: its work as a witness is another, or its store of
verdicts forgets. Everything but the cheat is right.
Next: `runs.py` for runs; `program/cases.py` for attacks without clients.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from solders.keypair import Keypair

from support.ports import Death, Killed, Wrapped
from support.program.audits import INCINERATOR
from support.runs import (
    WINDOWS,
    Chronicle,
    assert_conserved,
    raise_failures,
)
from troth_attestation.measure import Own
from troth_attestation.verdict import Reason, Verdict, VerdictKind
from troth_client.audit.judgement import Evidence
from troth_client.audit.witness import HonestWitnessWork, WitnessWork
from troth_client.participant.assembly import Ports
from troth_client.telemetry.events import JsonValue
from troth_coordinator.chain.case_instructions import (
    NO_SUBJECT,
    Claim,
    open_case,
    release_escrow,
)
from troth_coordinator.rules.audit_view import AuditKind
from troth_coordinator.rules.audits import Step, due_step, now, run_clock
from troth_coordinator.rules.view import EntryView
from troth_simulation.in_process import InProcessRun, SimulatedMember

STAKE, REWARD, FEE = 100_000_000, 1_000_000, 850_000
RECOMPUTE = 600_000
BOND = 11_900_000
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

Judges = Callable[[HonestWitnessWork], WitnessWork]
Said = Callable[[Evidence, Verdict], VerdictKind | None]
"""The verdict that a witness gives instead of its finding; None: its finding."""


def saying(said: Said) -> Judges:
    """A witness that recomputes as it should and then says something else."""

    def judges(honest: HonestWitnessWork) -> WitnessWork:
        def judge(evidence: Evidence, own: Own) -> Verdict:
            found = honest.judge(evidence, own)
            kind = said(evidence, found)
            return found if kind is None else Verdict(kind, Reason.WORK_DIFFERS)

        return Wrapped(honest, judge=judge)

    return judges


async def until_event(run: InProcessRun, told_of: Chronicle, name: str, **fields: object) -> Any:
    """Let slots pass until the program has said so; return the first such event."""
    run.runtime.join()
    try:
        for _ in range(PATIENCE_SLOTS):
            found = told_of.named(name, **fields)
            if found:
                return found[0]
            raise_failures(run)
            assert any(one.is_running for one in run.members), "nobody is left to do it"
            await run.runtime.wait()
    finally:
        run.runtime.leave()
    raise AssertionError(f"no {name} {fields}")


async def accuse(
    run: InProcessRun,
    round_: int,
    target: SimulatedMember,
    kind: AuditKind,
    subject: int | None = None,
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
    run.runtime.join()
    try:
        for _ in range(PATIENCE_SLOTS):
            for event in told_of.named("AuditClosed", **about):
                return event
            await _release(run, tuple(about.values()))
            await run.runtime.wait()
    finally:
        run.runtime.leave()
    raise AssertionError(f"still open: {about}")


async def _release(run: InProcessRun, key: tuple[int, ...]) -> None:
    view = await run.view()
    clock = run_clock(view.run, view.slot)
    for audit in await run.client.find_audits(run.at.run):
        due = due_step(now(audit, view.run.params, clock), view.run, view.slot)
        if audit.key == key and due is Step.RELEASE:
            step = release_escrow(run.at, run.authority.pubkey(), audit)
            await run.client.send([step], [run.authority])


async def entry_of(run: InProcessRun, one: SimulatedMember) -> EntryView:
    return (await run.view()).entries[one.index]


async def assert_only_paid(
    run: InProcessRun, told_of: Chronicle, payers: list[SimulatedMember]
) -> None:
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


def mortal(run: InProcessRun, name: str, last: str, round_: int | None = None) -> Death:
    """Let one member's first process be killed right after it has told of this, in that round."""
    death = Death(run.runtime, where=last)

    def wrap(one: SimulatedMember, ports: Ports) -> Ports:
        def emit(event: str, /, **fields: JsonValue) -> None:
            ports.events.emit(event, **fields)
            is_due = round_ is None or fields.get("round") == round_
            if event == last and is_due and not death.is_dead:
                death.die()

        is_first = one.name == name and not death.is_dead
        return replace(ports, events=Wrapped(ports.events, emit=emit)) if is_first else ports

    run.wrap = wrap
    return death


async def death_of(one: SimulatedMember) -> None:
    """Wait until a member's process was killed."""
    assert one.task is not None
    (found,) = await asyncio.gather(one.task, return_exceptions=True)
    assert isinstance(found, Killed), found
