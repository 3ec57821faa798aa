"""`troth audit`: the parts of an auditor, put together for one ledger.

Owns: which config and manifest a ledger names, the weights, the threads, and the order of it all.
Never: checks a rule; `troth_audit/replay/` does. Never prints.
Next: `audit_inputs.py` for ledgers, accounts and sources.
"""

import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from solders.pubkey import Pubkey

from troth_audit.replay.auditor import Auditor, Replay, most_ahead
from troth_audit.replay.closes import Closes
from troth_audit.replay.evidence import Collector
from troth_audit.replay.findings import Finding, Rule, discrepancy, missing
from troth_audit.replay.ports import Checker, Terms
from troth_audit.replay.recount import Recount
from troth_audit.replay.replayed import Replayed
from troth_audit.replay.report import Report
from troth_audit.replay.series import Series
from troth_audit.replay.submissions import Submissions
from troth_audit.replay.told import Told
from troth_cli.workflows.audit_inputs import Inputs
from troth_cli.workflows.audit_point import KeptPoint
from troth_client.compression.codec import VerifiedPayload
from troth_client.data.errors import ManifestError
from troth_client.data.manifest import Manifest
from troth_client.run_files.errors import RunFileError
from troth_client.run_files.fetch import parse_config
from troth_client.run_files.files import LIMITS, canonical_manifest
from troth_client.state.audited import AuditedWeights, replay_path
from troth_client.transport.base import BlobKind
from troth_coordinator.chain.event_types_life import RunCreated
from troth_coordinator.ledger.errors import LedgerError
from troth_coordinator.ledger.file import Ledger
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import NONE

MOST_ROUNDS: Final = NONE


@dataclass(frozen=True, slots=True)
class Plan:
    """The part of a run to audit: rounds below `end`, replayed from the state of `start`."""

    start: int = 0
    end: int = MOST_ROUNDS
    num_threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    state: Path | None = None
    """A folder that lets a later process go on."""


@dataclass(frozen=True, slots=True)
class Done:
    """An audit that has ended, and the numbers of its run for a picture."""

    report: Report
    series: Series


def audit(inputs: Inputs, plan: Plan, on_round: Callable[[int], None]) -> Done:
    """Audit a run from its ledger to the end; whatever is wrong is in the report."""
    created = created_by(inputs.ledger)
    early: list[Finding] = []
    period = 1 if created is None else created.params.residual_rounds
    told = Told(residual_rounds=period)
    with ThreadPoolExecutor(plan.num_threads, "audit") as threads:
        replay = None
        if created is not None:
            replay = _replay(inputs, plan, created, threads, early)
        if replay is not None:
            replay.on_round = on_round
            early += replay.found  # of an earlier process
        series = Series(told)
        run = bytes(Pubkey.from_string(inputs.ledger.head.run))
        checkers: list[Checker] = [Closes(told), Recount(told, run), series]
        reader = inputs.ledger.head.reader()
        auditor = Auditor(reader, told, replay, checkers, inputs.words)
        auditor.report.add(early)
        auditor.report.sources = tuple(word.source for word in inputs.words)
        auditor.report.is_offline = inputs.is_offline
        return Done(auditor.audit(inputs.ledger.entries()), series)


def created_by(ledger: Ledger) -> RunCreated | None:
    """Return the first event of a ledger; None where it is not the run's creation."""
    reader = ledger.head.reader()
    try:
        for entry in ledger.entries():
            first = next(iter(reader.events(entry)), None)
            return first if isinstance(first, RunCreated) else None
    except LedgerError:
        pass  # the auditor meets it again, and says so
    return None


def _replay(
    inputs: Inputs, plan: Plan, created: RunCreated, threads: Executor, early: list[Finding]
) -> Replay[VerifiedPayload] | None:
    """Return what replays the run; None where its files are missing or wrong: `early` says so."""
    config = _config(inputs, created, early)
    manifest = None if config is None else _manifest(inputs, created, early)
    if config is None or manifest is None:
        return None
    head = inputs.ledger.head
    run = bytes(Pubkey.from_string(head.run))
    num_rounds = min(created.params.max_rounds, plan.end) - plan.start
    path = replay_path(config, num_rounds)
    weights = AuditedWeights(run, config, inputs.sources, threads, path=path, folder=plan.state)
    terms = Terms(
        program=bytes(Pubkey.from_string(head.program)),
        run=run,
        genesis_hash=bytes.fromhex(head.genesis_hash),
        config=config,
        num_sequences=manifest.num_sequences,
        num_tiles=weights.layout.num_tiles,
        payload_bytes=weights.payload_bytes,
    )
    kept = None if plan.state is None else KeptPoint(plan.state, head.run, weights)
    saved = None if kept is None else kept.load(plan.start, plan.end)
    start = plan.start if saved is None else saved.round
    replay = Replay(
        Collector(terms, inputs.sources, weights),
        Submissions(terms),
        Replayed(weights, start, plan.end),
        threads,
        range(start, plan.end),
        most_ahead(terms),
    )
    if saved is not None:
        replay.restore(saved)
    if kept is not None:
        replay.on_state = partial(kept.save, replay)
    return replay


def _config(inputs: Inputs, created: RunCreated, early: list[Finding]) -> RunConfig | None:
    data = _file(inputs, Rule.CONFIG, BlobKind.CONFIG, created.config_hash, early)
    if data is None:
        return None
    try:
        return parse_config(data)
    except RunFileError as error:
        early.append(discrepancy(Rule.CONFIG, error.expected, error.found))
        return None


def _manifest(inputs: Inputs, created: RunCreated, early: list[Finding]) -> Manifest | None:
    data = _file(inputs, Rule.MANIFEST, BlobKind.MANIFEST, created.manifest_hash, early)
    if data is None:
        return None
    try:
        return canonical_manifest(data)
    except (RunFileError, ManifestError) as error:
        early.append(discrepancy(Rule.MANIFEST, error.expected, error.found))
        return None


def _file(
    inputs: Inputs, rule: Rule, kind: BlobKind, key: bytes, early: list[Finding]
) -> bytes | None:
    data = inputs.sources.get(kind, key, LIMITS[kind])
    if data is None:
        instead, what = inputs.sources.instead(kind, key, LIMITS[kind]), f"{kind} {key.hex()}"
        early.append(discrepancy(rule, what, instead) if instead else missing(rule, what))
    return data
