"""Collect: exactly the payloads that the chain included in a closed round, nothing else.

Owns: how a closed round ended, obtaining every included payload, reporting payloads that nobody
serves.
Never: returns a subset. A participant that lacks an included payload keeps fetching (section 4).
Next: `await_close.py` and `replay.py`, which call this for the open round and for earlier ones.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from solders.instruction import Instruction

from troth_client.compression.codec import VerifiedPayload
from troth_client.network.chain import RunChain
from troth_client.network.errors import LaggingError, StoppedError
from troth_client.network.sends import Due, phase_left
from troth_client.network.submissions import Submissions
from troth_client.state.records import Closure, Held, Payloads
from troth_client.telemetry.losses import round_loss
from troth_client.transport.errors import TransportError
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import REFUSALS
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import has_dispersed
from troth_coordinator.rules.view import NetworkView, RoundFlag, RoundView

REPORT_AFTER_SLOTS = 8
"""An open round waits this long before we report a missing payload of the round before. So do we
from our first try on, for we may come back late in a round. A restart of a holder, or a broken
connection, must not cost those who vouched a strike."""
REPORT_AFTER_SHARE = 4
"""Nor do we report before as many slots have passed as a quarter of the Commit phase has."""


async def collect(
    chain: RunChain,
    submissions: Submissions,
    view: NetworkView,
    round_: int,
    held: Mapping[int, Held],
    *,
    is_patient: bool = True,
) -> tuple[Closure, Payloads]:
    """Return the closure of a closed round and its included payloads, in index order.

    LAGGING: fetches missing payloads for as long as it takes. A payload that nobody serves is
    reported on chain once, and may be struck from the round meanwhile. Raises LaggingError when
    the ring has dropped the round, when the run has stored a newer checkpoint or has ended; and
    StoppedError when we are asked to stop. Without patience, raises LaggingError at once.
    """
    have = dict(held)
    reported: set[int] = set()
    first_try = view.slot
    last_lacking: list[int] = []
    while True:
        account = await chain.read_closed(view, round_)
        missing = [int(i) for i in bitmap.indices_of(account.included) if i not in have]
        have |= await _obtain_all(submissions, account, view, missing)
        lacking = [i for i in missing if i not in have]
        if not lacking:
            return closure_of(account, chain.index, have), _payloads(account, have)
        if lacking != last_lacking:
            chain.events.emit("lagging", round=round_, missing=list(lacking))
            last_lacking = lacking
        if submissions.state.stop.is_set():
            raise StoppedError(round_, lacking)
        if has_dispersed(view):
            raise _lost(round_, lacking)
        if view.run.root_round > round_ or not is_patient:
            raise _passed(round_, lacking, view.run.root_round)
        if _may_report(chain, view, round_, first_try):
            reported |= await _report(chain, view, round_, set(lacking) - reported)
        view = await chain.watch.next()


def closure_of(
    account: RoundView, own: int | None = None, have: Mapping[int, Held] | None = None
) -> Closure:
    """Return how a closed round ended, in general and for the participant `own`."""
    held = have or {}
    mine = None if own is None else held.get(own)
    losses = [held[i].header.mean_loss for i in bitmap.indices_of(account.included) if i in held]
    is_mine = mine is not None and bitmap.has(account.included, mine.submission.index)
    return Closure(
        round=account.round,
        num_trainers=bitmap.count(account.trainers),
        included=account.included,
        is_void=bool(account.flags & RoundFlag.VOID),
        canonical_root=account.canonical_root,
        own_residual=mine.header.residual_after if mine is not None and is_mine else None,
        carried=frozenset(
            account.ballots[i].previous_included for i in bitmap.indices_of(account.trainers)
        ),
        loss=round_loss(losses),
    )


async def _obtain_all(
    submissions: Submissions, account: RoundView, view: NetworkView, missing: list[int]
) -> dict[int, Held]:
    fetching = (submissions.obtain(account, view, index) for index in missing)
    found = await asyncio.gather(*fetching, return_exceptions=True)
    have: dict[int, Held] = {}
    for index, one in zip(missing, found, strict=True):
        if isinstance(one, Held):
            have[index] = one
        elif not isinstance(one, TransportError):
            raise one
    return have


def _payloads(account: RoundView, have: Mapping[int, Held]) -> tuple[VerifiedPayload | None, ...]:
    return tuple(have[index].decoded for index in bitmap.indices_of(account.included))


async def _report(chain: RunChain, view: NetworkView, round_: int, targets: set[int]) -> set[int]:
    """Report on chain the included payloads that cannot be fetched; return the reported ones."""
    reported = set()
    for target in sorted(targets):
        report = instructions.report_missing(
            chain.at, chain.payer, chain.index, round_, target, view.run.round
        )
        is_known = await chain.send_while(
            lambda now: now.run.round == view.run.round,
            partial(_send_report, chain, report, round_, target),
            left=phase_left,
        )
        if is_known:
            reported.add(target)
    return reported


async def _send_report(
    chain: RunChain, report: Instruction, round_: int, target: int, due: Due
) -> bool:
    """Send a report; return whether the chain has ours now."""
    try:
        sent = await chain.send(report, due=due)
    except REFUSALS as error:
        chain.events.emit("report_refused", round=round_, index=target, name=error.name)
        return error.name == "AlreadyReported"
    chain.events.emit("reported_missing", round=round_, index=target, fee=sent.fee_lamports)
    return True


def _may_report(chain: RunChain, view: NetworkView, round_: int, first_try: int) -> bool:
    """Return whether the open round builds on `round_` and includes us, and all waited enough."""
    current, run = view.round, view.run
    if current is None or run.phase not in (Phase.COMMIT, Phase.ATTEST, Phase.COOLDOWN):
        return False
    if current.base_round != round_ or not chain.is_in(current.members):
        return False
    patience = max(REPORT_AFTER_SLOTS, run.params.commit_slots // REPORT_AFTER_SHARE)
    return view.slot >= max(current.open_slot, first_try) + patience


def _passed(round_: int, lacking: list[int], newest: int) -> LaggingError:
    return LaggingError(
        f"the payloads {lacking} that round {round_} included",
        f"nobody who serves them, and the newest checkpoint is that of round {newest}",
        "LAGGING: load weights from others instead.",
    )


def _lost(round_: int, lacking: list[int]) -> LaggingError:
    return LaggingError(
        f"the payloads {lacking} that round {round_} included",
        "nobody who serves them, and the run has ended",
        "LAGGING: load the final weights from somebody and check them against the run's root.",
    )
