"""A restarted participant shows its judgements on disk before it reads its weights.

Owns: the order after a start. First come commits and reveals of verdicts and votes on disk. Then
`audits.py` makes and pushes opening sets, while `rounds.begin` checks the stored weights. New
judgements and rounds come last.
Never: judges, or needs weights. Next: `supervisor.py`, which does the rest of a start.

A reveal window may be shorter than the reading of the weights, and a hidden verdict is the dearest
fault of all.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NoReturn

from troth_client.audit.witness import Speaker, recall
from troth_client.audit_round import tell_verdict, tell_vote
from troth_client.member import Member
from troth_client.network.chain import OUTSIDE
from troth_client.network.named_tasks import NamedTasks
from troth_client.network.watch import RPC_FAILURES
from troth_client.runtime.base import end


async def tell_while(speaker: Speaker, load: Callable[[], Awaitable[Member]]) -> Member:
    """Return the loaded member; meanwhile commit to and reveal the judgements on disk.

    Raises what `load` raises, and at once an error that ends the telling.
    """
    chain = speaker.chain
    if chain.index == OUTSIDE or not speaker.audits.verdicts.duties():
        return await load()
    runtime = chain.runtime

    async def loaded() -> Member:
        return await load()

    loading = runtime.start(loaded(), "load")
    telling = runtime.start(tell_pending(speaker), "telling")
    watching = runtime.start(chain.watch.follow(), "watch")
    try:
        await runtime.wait_for_others(loading, telling, watching)
        for sibling in (telling, watching):
            if sibling.done():
                sibling.result()
        member = loading.result()
        await end(telling, watching)
        # The audits take over from here, and must not send the same again.
        await chain.all_sent()
    except BaseException:
        await end(loading, telling, watching, *chain.sends)
        raise
    return member


async def tell_pending(speaker: Speaker) -> NoReturn:
    """Show every judgement on disk that an open audit or case still waits for, for ever."""
    watch, tracker = speaker.chain.watch, speaker.audits.tracker
    tasks = NamedTasks(speaker.chain, "telling")
    try:
        while True:
            upcoming = watch.upcoming()
            await tasks.until(upcoming)
            try:
                await tracker.refresh(upcoming.result())
            except RPC_FAILURES as error:
                watch.report(error)
            else:
                _take_up(speaker, tasks)
    finally:
        await tasks.close()


def _take_up(speaker: Speaker, tasks: NamedTasks) -> None:
    for duty in speaker.audits.verdicts.duties():
        audit = speaker.audits.tracker.find(duty.round, duty.target, duty.kind)
        if audit is None:
            continue
        statement = recall(speaker, audit, is_juror=duty.is_juror)
        if statement is not None:
            tell = tell_vote if duty.is_juror else tell_verdict
            tasks.start(duty, partial(tell, speaker, audit, statement))
