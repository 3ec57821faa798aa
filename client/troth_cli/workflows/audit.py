"""`troth audit`: the parts of an auditor, put together for one ledger.

Owns: which checks there are, the threads, and the order of it all.
Never: checks a rule; `troth_audit/replay/` does. Never prints.
Next: `audit_inputs.py` for ledgers, accounts and sources; `audit_replay.py` for bytes and weights.
"""

import re
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

from solders.pubkey import Pubkey

from troth_audit.replay.account import lives, origin
from troth_audit.replay.auditor import Auditor
from troth_audit.replay.closes import Closes
from troth_audit.replay.findings import Finding
from troth_audit.replay.ports import Checker
from troth_audit.replay.recount import Recount
from troth_audit.replay.report import Report
from troth_audit.replay.series import Series
from troth_audit.replay.tally import Tally
from troth_audit.replay.told import Told
from troth_audit.replay.undone import Undone
from troth_cli.workflows.audit_inputs import Inputs
from troth_cli.workflows.audit_point import POINT_FILE
from troth_cli.workflows.audit_replay import Plan, exact_tests, prepare
from troth_cli.workflows.audit_survey import created_by
from troth_client.compression.codec import VerifiedPayload
from troth_client.runtime.files import FolderLock, remove_temporaries
from troth_client.state.audited import WEIGHTS_NAME

_KEPT: Final = re.compile(f"{WEIGHTS_NAME.pattern}|{re.escape(POINT_FILE)}")
"""The files that an audit keeps in its folder, in which a user may have others."""


@dataclass(frozen=True, slots=True)
class Done:
    """An audit that has ended, and the numbers of its run for a picture."""

    report: Report
    series: Series


def audit(inputs: Inputs, plan: Plan, on_round: Callable[[int], None]) -> Done:
    """Audit a run from its ledger to the end; whatever is wrong is in the report.

    Raises FolderInUseError where another audit keeps its state in the same folder.
    """
    with nullcontext() if plan.state is None else FolderLock(plan.state):
        if plan.state is not None:
            remove_temporaries(plan.state, _KEPT)  # an audit was killed while it wrote
        return _audit(inputs, plan, on_round)


def _audit(inputs: Inputs, plan: Plan, on_round: Callable[[int], None]) -> Done:
    with ThreadPoolExecutor(plan.num_threads, "audit") as threads:
        auditor, series = auditor_of(inputs, plan, threads)
        if auditor.replay is not None:
            auditor.replay.on_round = on_round
        return Done(auditor.audit(inputs.ledger.entries()), series)


def auditor_of(
    inputs: Inputs, plan: Plan, threads: Executor
) -> tuple[Auditor[VerifiedPayload], Series]:
    """Return an auditor before its first event, and the numbers that it will gather."""
    created, head = created_by(inputs.ledger), inputs.ledger.head
    early: list[Finding] = []
    period = 1 if created is None else created.params.residual_rounds
    told = Told(residual_rounds=period)
    if created is not None:
        early += lives(inputs.ledger.has_earlier_life(), created)
        early += origin(created, *(Pubkey.from_string(one) for one in (head.run, head.program)))
    replay = None if created is None else prepare(inputs, plan, created, threads, early)
    recount = Recount(told, bytes(Pubkey.from_string(head.run)))
    closes, series = Closes(told, recount.books), Series(told, recount.books)
    checkers: list[Checker] = [closes, recount, Tally(recount.books), series]
    checkers.append(Undone(recount.books))
    if replay is not None:
        early += replay.found  # of an earlier process
        checkers.append(exact_tests(replay, told))
    auditor = Auditor(head.reader(), told, replay, checkers, inputs.words, inputs.gone)
    auditor.report.add(early)
    auditor.report.sources = tuple(word.source for word in inputs.words)
    auditor.report.is_offline = inputs.is_offline
    auditor.report.order = None if replay is None else replay.order
    return auditor, series
