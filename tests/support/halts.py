"""Members that fall silent until a run halts.

Owns: the silence. Never: asserts about what follows. Next: runs.py; test_inprocess_halts.py.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from support.runs import start_members, time_stopped, until, until_round
from troth_cli.workflows.start import start_run
from troth_coordinator.chain.operations import Session
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import can_begin
from troth_coordinator.rules.root import root_vote
from troth_simulation.in_process import InProcessRun, SimulatedMember


async def with_silent(run: InProcessRun, working: list[str], silent: list[str]) -> None:
    """Start some members; the others join and post ready, and never act again."""
    with time_stopped(run):
        await start_members(run, working)
        sessions = []
        for name in silent:
            one = await run.add(name)
            sessions.append((one, Session(run.client, run.at, one.session, one.index)))
        view = await until(run, lambda view: view.run.phase == Phase.WARMUP, is_stopped=True)
        for one, session in sessions:
            vote = root_vote(view.run.address, 0, bytes(one.owner.pubkey()), view.run.root)
            await session.post_ready(0, vote)


@asynccontextmanager
async def half_dead(run: InProcessRun, members: Sequence[SimulatedMember]) -> AsyncIterator[None]:
    """Members without a client that commit to nonsense in every round and never attest.

    Wholly silent ones would be inactive after a round and a half, before a run can halt.
    """
    sessions = [Session(run.client, run.at, one.session, one.index) for one in members]

    async def haunt() -> None:
        while True:
            view = await run.view()
            for session in sessions:
                is_due = view.round and bitmap.has(
                    view.round.trainers & ~view.round.committed, session.index
                )
                if (
                    is_due
                    and view.run.phase == Phase.COMMIT
                    and view.slot <= view.run.phase_end_slot
                ):
                    await session.commit_payload(view.run.round, b"h" * 32, b"v" * 32)
            await run.runtime.wait()

    run.runtime.join()
    haunting = asyncio.create_task(haunt())
    try:
        yield
    finally:
        haunting.cancel()
        await asyncio.gather(haunting, return_exceptions=True)
        run.runtime.leave()


async def halted_after_progress(run: InProcessRun) -> tuple[int, list[SimulatedMember]]:
    """Six good rounds with a checkpoint at round 4, then three void ones."""
    members = await start_members(run, ["ada", "bob", "cyd", "dan", "eve"])
    await until_round(run, 6)
    for one in members[2:]:
        await run.stop(one)
    async with half_dead(run, members[2:]):
        view = await until(run, lambda view: view.run.phase == Phase.HALTED)
    assert view.run.root_round == 4
    return view.run.round, members


async def begin_with_fewer(run: InProcessRun) -> None:
    """The authority goes on with those who are there, once nobody else may."""
    await until(
        run,
        lambda view: (
            view.run.phase == Phase.WAITING_FOR_MEMBERS
            and not can_begin(view)
            and can_begin(view, by_authority=True)
        ),
    )
    await start_run(run.client, run.at, run.authority)
