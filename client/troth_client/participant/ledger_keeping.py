"""A participant's own ledger: the events of the run, appended after each closed round.

Owns: when it is brought up to date. Never: delays a round, or ends one: what goes wrong is an
event, and the next close tries again.
Next: `troth_coordinator/ledger/follow.py` for what is asked and proven.
"""

import asyncio
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from troth_client.member import Member
from troth_client.network.watch import RPC_FAILURES
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import RpcLimitedError
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.file import LedgerFile, LedgerHead
from troth_coordinator.ledger.follow import Refusals, follow
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView

PAUSE_SECONDS: Final = 0.3
"""Between two requests: the rounds need the RPC node too, and it may count what one caller asks."""
LONGEST_PAUSE_SECONDS: Final = 4.8
"""The pause doubles with each limit that an RPC node sets, up to this, and goes back later."""
LAST_SECONDS: Final = 30.0
"""At the end of the run, so long at most is spent on what is missing."""


@dataclass(slots=True)
class LedgerSource:
    """The RPC nodes that a ledger is read from, and the pause between two requests.

    `client` has connections of its own: an RPC node that limits it rests for the ledger alone.
    """

    client: CoordinatorClient
    least_seconds: float = PAUSE_SECONDS
    pause_seconds: float = PAUSE_SECONDS

    def hurry(self) -> None:
        """Take note that no RPC node has limited us."""
        self.pause_seconds = max(self.least_seconds, self.pause_seconds / 2)

    def slow_down(self) -> None:
        """Take note of a limit."""
        self.pause_seconds = min(LONGEST_PAUSE_SECONDS, self.pause_seconds * 2)


async def keep_ledger(member: Member, path: Path, source: LedgerSource) -> NoReturn:
    """Append what has landed, once for each closed round and at the end of the run, for ever."""
    while True:
        await member.chain.watch.next()
        ledger = await _opened(member, path)
        if ledger is not None:
            with ledger:
                await _keep(member, ledger, source)
        await _next_moment(member)


async def complete_ledger(member: Member, path: Path | None, source: LedgerSource) -> None:
    """Append what has landed since, when the participant's work is done; not where it must stop."""
    if path is None or member.state.stop.is_set():
        return
    ledger = await _opened(member, path)
    if ledger is not None:
        with ledger, contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_SECONDS):
                await _follow(member, ledger, source, 0)


async def _opened(member: Member, path: Path) -> LedgerFile | None:
    chain = member.chain
    head = LedgerHead(str(chain.at.program), str(chain.at.run), chain.genesis_hash.hex())
    try:
        return await chain.runtime.compute(LedgerFile, path, head)
    except (LedgerError, OSError, MemoryError) as error:
        _report(member, error)
        return None


async def _keep(member: Member, ledger: LedgerFile, source: LedgerSource) -> NoReturn:
    refusals = Refusals()
    while True:
        if await _follow(member, ledger, source, source.pause_seconds):
            refusals.end()
        else:
            refusals.add()
        await _renew(member, ledger, source, refusals)
        await _next_moment(member)


async def _follow(
    member: Member, ledger: LedgerFile, source: LedgerSource, pause_seconds: float
) -> bool:
    """Append what is new; False where the chain contradicts what is there."""
    try:
        await follow(source.client, ledger, pause_seconds)
        source.hurry()
    except RPC_FAILURES as error:
        if isinstance(error, RpcLimitedError):
            source.slow_down()
        member.chain.watch.report(error)
    except (OSError, MemoryError) as error:
        _report(member, error)
    except LedgerError as error:
        _report(member, error)
        return False
    return True


async def _renew(
    member: Member, ledger: LedgerFile, source: LedgerSource, refusals: Refusals
) -> None:
    """Read the whole history where that is due: an RPC node may have invented closes once."""
    try:
        if await refusals.renew(source.client, ledger, source.pause_seconds):
            member.chain.events.emit("ledger_renewed")
    except RPC_FAILURES as error:
        member.chain.watch.report(error)
    except (LedgerError, OSError, MemoryError) as error:
        _report(member, error)


def _report(member: Member, error: Exception) -> None:
    reason = str(error) or type(error).__name__
    member.chain.events.emit("ledger_behind", reason=reason)


async def _next_moment(member: Member) -> None:
    """Wait for the next close, or for the end of the run."""
    seen = _moment(member.chain.watch.latest)
    await member.chain.watch.until(lambda view: _moment(view) != seen)


def _moment(view: NetworkView) -> tuple[int, bool]:
    return view.run.round, view.run.phase == Phase.FINISHED
