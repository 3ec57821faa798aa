"""The replay of an audit: config, manifest, weights, data, and the point to begin at.

Owns: what is asked of an audit, and the parts that need bytes, put together.
Never: checks a rule; `troth_audit/replay/` does. Never prints.
Next: `audit.py`, which calls it; `audit_survey.py` for the first reading of the ledger.
"""

import os
import secrets
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

from solders.pubkey import Pubkey

from troth_attestation.measure import JudgeRule
from troth_audit.replay.account import bound
from troth_audit.replay.auditor import Replay, most_ahead
from troth_audit.replay.ending import INSTALL
from troth_audit.replay.evidence import Collector
from troth_audit.replay.exact import Exact
from troth_audit.replay.findings import Finding, Grade, Rule, discrepancy, missing
from troth_audit.replay.order import Order
from troth_audit.replay.ports import Terms
from troth_audit.replay.recompute import Recompute
from troth_audit.replay.replayed import Replayed
from troth_audit.replay.submissions import Submissions
from troth_audit.replay.told import Told
from troth_cli.workflows.audit_inputs import Inputs
from troth_cli.workflows.audit_point import KeptPoint
from troth_cli.workflows.audit_survey import drawn_from, start_before
from troth_client.audit.replayed import ReplayedGradients, Rows
from troth_client.compression.codec import VerifiedPayload
from troth_client.data.errors import ManifestError
from troth_client.data.fit import misfit
from troth_client.data.manifest import Manifest, load_manifest
from troth_client.data.pieces import PieceData
from troth_client.data.shards import TokenData
from troth_client.run_files.errors import RunFileError
from troth_client.run_files.fetch import parse_config
from troth_client.run_files.files import LIMITS, canonical_manifest
from troth_client.runtime.memory import as_memory_error
from troth_client.state.audited import AuditedWeights, replay_path
from troth_client.transport.base import BlobKind
from troth_coordinator.chain.event_types_life import RunCreated
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import NONE

MOST_ROUNDS: Final = NONE
KEY_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """The part of a run to audit: rounds below `end`, replayed from the state of `start`.

    `is_exact`: from that state and no earlier one. `num_drawn` payloads are computed again, drawn
    with `draw_key`; without a key one is made. `data` has the run's tokens; else sources have them.
    `state` is a folder that lets a later process go on; `warn` is told when it can no longer.
    """

    start: int = 0
    end: int = MOST_ROUNDS
    is_exact: bool = False
    num_drawn: int = 0
    draw_key: str = ""
    data: Path | None = None
    num_threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    state: Path | None = None
    warn: Callable[[str], None] = lambda _: None


def prepare(
    inputs: Inputs, plan: Plan, created: RunCreated, threads: Executor, early: list[Finding]
) -> Replay[VerifiedPayload] | None:
    """Return what replays the run; None where its files are missing or wrong: `early` says so.

    Raises DataError where the user's data folder is another one.
    """
    config = _config(inputs, created, early)
    manifest = None if config is None else _manifest(inputs, created, config, early)
    if config is None or manifest is None:
        return None
    num_rounds = min(created.params.max_rounds, plan.end) - plan.start
    weights = _weights(inputs, plan, config, num_rounds, threads)
    if weights is None:
        early.append(missing(Rule.STATE_ROOT, "memory for the weights of the model in its config"))
        return None
    terms = _terms(inputs, config, manifest, weights)
    kept = None if plan.state is None else KeptPoint(plan.state, terms, weights, plan.warn)
    asked = _asked(inputs, plan, weights)
    saved = None if kept is None else kept.load(asked)
    order = _with_key(asked, "" if saved is None else saved.order.draw_key)
    start = order.start if saved is None else saved.round
    replay = Replay(
        Collector(terms, inputs.sources, weights),
        Submissions(terms),
        Replayed(weights, start, plan.end, plan.start),
        threads,
        range(start, plan.end),
        most_ahead(terms),
        order,
        _recompute(inputs, terms, order, weights, _data(plan, manifest, inputs)),
    )
    if saved is not None:
        replay.restore(saved)
    if kept is not None:
        replay.on_state = partial(kept.save, replay)
    return replay


def _weights(
    inputs: Inputs, plan: Plan, config: RunConfig, num_rounds: int, threads: Executor
) -> AuditedWeights | None:
    """Return room for the weights; None where there is not so much memory."""
    path = replay_path(config, num_rounds)
    run, sources, folder = _run(inputs), inputs.sources, plan.state
    try:
        with as_memory_error():
            return AuditedWeights(run, config, sources, threads, path=path, folder=folder)
    except MemoryError:
        return None


def exact_tests(replay: Replay[VerifiedPayload], told: Told) -> Exact[VerifiedPayload]:
    """Return the tests of opened tiles that need no gradient, for all rounds of the order."""
    config, order = replay.collector.terms.config, replay.order
    return Exact(
        told,
        replay.collector,
        attrgetter("signs"),
        JudgeRule(config.demo, config.judge),
        replay.executor,
        range(order.start, order.end),
    )


def _run(inputs: Inputs) -> bytes:
    return bytes(Pubkey.from_string(inputs.ledger.head.run))


def _terms(inputs: Inputs, config: RunConfig, manifest: Manifest, weights: AuditedWeights) -> Terms:
    return Terms(
        program=bytes(Pubkey.from_string(inputs.ledger.head.program)),
        run=_run(inputs),
        genesis_hash=bytes.fromhex(inputs.ledger.head.genesis_hash),
        config=config,
        num_sequences=manifest.num_sequences,
        num_tiles=weights.layout.num_tiles,
        payload_bytes=weights.payload_bytes,
    )


def _asked(inputs: Inputs, plan: Plan, weights: AuditedWeights) -> Order:
    start = plan.start if plan.is_exact else start_before(inputs.ledger, plan.start, weights)
    return Order(start=start, end=plan.end, num_drawn=plan.num_drawn, draw_key=plan.draw_key)


def _with_key(asked: Order, key: str) -> Order:
    """Take the key of an earlier process, or a new one, where none was named and one is needed."""
    if asked.draw_key or not asked.num_drawn:
        return asked
    return asked.model_copy(update={"draw_key": key or secrets.token_hex(KEY_BYTES)})


def _data(plan: Plan, manifest: Manifest, inputs: Inputs) -> Rows:
    if plan.data is None:
        return PieceData(manifest, inputs.sources)
    return TokenData(plan.data, load_manifest(plan.data, manifest.hash))


def _recompute(
    inputs: Inputs, terms: Terms, order: Order, weights: AuditedWeights, data: Rows
) -> Recompute[VerifiedPayload] | None:
    if not order.num_drawn:
        return None
    config, span = terms.config, range(order.start, order.end)
    return Recompute(
        terms,
        inputs.sources,
        ReplayedGradients(config, weights, data),
        JudgeRule(config.demo, config.judge, weights.layout.tensor_tiles),
        drawn_from(inputs.ledger, order.num_drawn, order.draw_key, span),
    )


def _config(inputs: Inputs, created: RunCreated, early: list[Finding]) -> RunConfig | None:
    data = _file(inputs, Rule.CONFIG, BlobKind.CONFIG, created.config_hash, early)
    if data is None:
        return None
    try:
        config = parse_config(data)
    except RunFileError as error:
        early.append(_of_another_version(Rule.CONFIG, error))
        return None
    wrong = list(bound(config, created))
    early += wrong
    return None if wrong else config


def _manifest(
    inputs: Inputs, created: RunCreated, config: RunConfig, early: list[Finding]
) -> Manifest | None:
    data = _file(inputs, Rule.MANIFEST, BlobKind.MANIFEST, created.manifest_hash, early)
    if data is None:
        return None
    try:
        manifest = canonical_manifest(data)
    except (RunFileError, ManifestError) as error:
        early.append(_of_another_version(Rule.MANIFEST, error))
        return None
    wrong = misfit(config, manifest)
    if wrong is not None:
        expected = f"{wrong.key} {wrong.wanted}, as in the config"
        early.append(discrepancy(Rule.MANIFEST, expected, wrong.found))
        return None
    return manifest


def _of_another_version(rule: Rule, error: RunFileError | ManifestError) -> Finding:
    """Return the finding for bytes that the chain names and this version cannot use."""
    return Finding(Grade.MISSING, rule, error.expected, f"{error.found}: {INSTALL}")


def _file(
    inputs: Inputs, rule: Rule, kind: BlobKind, key: bytes, early: list[Finding]
) -> bytes | None:
    data = inputs.sources.get(kind, key, LIMITS[kind])
    if data is None:
        instead, what = inputs.sources.instead(kind, key, LIMITS[kind]), f"{kind} {key.hex()}"
        early.append(discrepancy(rule, what, instead) if instead else missing(rule, what))
    return data
