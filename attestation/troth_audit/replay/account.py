"""The Run account against the ledger: whether the ledger is the run's, and whole.

Owns: the comparison of hash, number of events, round, phase, root, parameters, config, manifest.
Never: reads an account; the caller has it from an RPC node, or from an archive.
Next: `auditor.py`, which folds the ledger.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final

from solders.pubkey import Pubkey

from troth_audit.replay.findings import Finding, Grade, Rule, discrepancy, missing, note
from troth_audit.replay.told import Told
from troth_coordinator.chain.addresses import run_address
from troth_coordinator.chain.event_types_life import RunCreated
from troth_coordinator.ledger.fold import Fold
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.settings import BOUND
from troth_coordinator.rules.view import RunView

_KEPT_FROM_CREATION: Final = ("config_hash", "manifest_hash", "genesis_root", "run_id")


@dataclass(frozen=True, slots=True)
class Word:
    """The Run account as one source tells it. An archive's own word proves nothing by itself."""

    source: str
    run: RunView
    is_archive: bool = False


@dataclass(frozen=True, slots=True)
class Absence:
    """An RPC node that has no account of the run. `shows_end`: it shows how the ledger ends."""

    source: str
    shows_end: bool


def origin(created: RunCreated, run: Pubkey, program: Pubkey) -> Iterator[Finding]:
    """Yield whether the run's address is another one than its creator's run id leads to."""
    expected = run_address(created.authority, created.run_id, program)
    if expected != run:
        yield discrepancy(Rule.RUN_ACCOUNT, f"the address {expected} by its run id", run)


def lives(has_earlier: bool, created: RunCreated) -> Iterator[Finding]:
    """Yield that the ledger tells of earlier lives of the run, which no audit goes through."""
    if has_earlier:
        found = (
            f"the run was closed, and created again in slot {created.slot}: only that is audited"
        )
        yield note(Rule.RUN_ACCOUNT, "one life of the run", found)


def bound(config: RunConfig, created: RunCreated) -> Iterator[Finding]:
    """Yield where the hashed config and the run's creation contradict each other."""
    if config.data.manifest_hash != created.manifest_hash.hex():
        expected = f"the data manifest {created.manifest_hash.hex()}"
        yield discrepancy(Rule.CONFIG, expected, config.data.manifest_hash or "none")
    for name, (section, field) in BOUND.items():
        one, other = getattr(created.params, name), getattr(getattr(config, section), field)
        if one != other:
            yield discrepancy(Rule.CONFIG, f"{name} {one}, as on chain", f"{name} {other}")


def differences(words: Sequence[Word]) -> Iterator[Finding]:
    """Yield where the sources contradict each other about the same number of events."""
    for first, other in ((words[0], other) for other in words[1:]):
        if first.run.event_sequence != other.run.event_sequence:
            continue  # one of them is behind
        for name in ("config_hash", "manifest_hash", "genesis_root", "chain_hash", "params"):
            one, two = getattr(first.run, name), getattr(other.run, name)
            is_open = name == "chain_hash" and first.run.round != other.run.round
            if one != two and not is_open:
                yield discrepancy(
                    Rule.RUN_ACCOUNT,
                    f"one {name.replace('_', ' ')}: {_shown(one)} by {first.source}",
                    f"{_shown(two)} by {other.source}",
                )


def absent(words: Sequence[Word], gone: Sequence[Absence], told: Told) -> Iterator[Finding]:
    """Yield what it means that RPC nodes have no such account, or that nobody has one.

    The program removes the account of a run that is closed. Then the transactions that closed the
    last round and the run, which an RPC node may still show, prove the ledger.
    """
    for one in gone:
        expected = f"the Run account at {one.source}"
        if told.is_closed and one.shows_end:
            found = "none: the run was closed; the transactions there end as the ledger does"
            yield note(Rule.RUN_ACCOUNT, expected, found)
        elif told.is_closed:
            found = (
                "none, and not the transactions that the ledger ends with: the run never was there,"
                " or the RPC node has forgotten them. Name one that keeps its whole history"
            )
            yield Finding(Grade.MISSING, Rule.RUN_ACCOUNT, expected, found)
        else:
            found = "none: the run was closed, and the ledger ends before that, or it never was"
            yield Finding(Grade.MISSING, Rule.RUN_ACCOUNT, expected, found)
    is_shown = told.is_closed and any(one.shows_end for one in gone)
    if not words and not is_shown:
        yield missing(Rule.RUN_ACCOUNT, "the Run account, at a node or in an archive")


def compare(
    words: Sequence[Word], fold: Fold, told: Told, passed: Collection[str]
) -> Iterator[Finding]:
    """Yield what the accounts say and the ledger does not, at the ledger's end.

    `passed` are the sources whose number of events and hash the ledger had on its way. A ledger
    that ends before an account lacks data; one that goes on after all of them is not proven.
    """
    is_proven = any(word.run.event_sequence == fold.next_sequence for word in words)
    for word in words:
        if told.created is not None and word.run.created_slot > told.created.slot:
            yield _of_later_life(word, told.created)
            continue
        yield from _created(word, told)
        sequence = word.run.event_sequence
        if sequence > fold.next_sequence:
            found = f"a ledger that ends after {fold.next_sequence} events"
            expected = f"{sequence} events, by {word.source}"
            yield Finding(Grade.MISSING, Rule.CHAIN_HASH, expected, found)
        elif word.source not in passed:
            expected = f"the chain hash {word.run.chain_hash.hex()} by {word.source}"
            found = f"another one after {sequence} events"
            yield discrepancy(Rule.CHAIN_HASH, expected, found, word.run.round)
        elif sequence == fold.next_sequence:
            yield from _state(word, told)
        elif not is_proven:
            yield _ahead(word, fold, told)


def _of_later_life(word: Word, created: RunCreated) -> Finding:
    """Return what it means that the run was closed and created again after this ledger."""
    expected = f"the account of the run that was created in slot {created.slot}, by {word.source}"
    found = (
        f"one created in slot {word.run.created_slot}: the run was closed before that,"
        " and nothing proves this ledger"
    )
    return Finding(Grade.MISSING, Rule.RUN_ACCOUNT, expected, found)


def _created(word: Word, told: Told) -> Iterator[Finding]:
    if told.created is None:
        return
    event = told.created
    of_event = {
        **{name: getattr(event, name) for name in _KEPT_FROM_CREATION},
        "authority": bytes(event.authority),
        "council": bytes(event.council),
        "created": event.params,
        "created_slot": event.slot,
    }
    for name, other in of_event.items():
        one = getattr(word.run, name)
        if one != other:
            yield _differs(word, name, one, other)


def _state(word: Word, told: Told) -> Iterator[Finding]:
    run = word.run
    if told.params is not None and told.params != run.params:
        names = [
            one.name
            for one in fields(run.params)
            if getattr(run.params, one.name) != getattr(told.params, one.name)
        ]
        expected = f"the parameters in the ledger, by {word.source}"
        yield discrepancy(Rule.RUN_ACCOUNT, expected, f"others: {', '.join(names)}")
    if told.newest is not None and told.newest.closed is None and told.newest.number != run.round:
        yield _differs(word, "round", run.round, told.newest.number)
    if told.stored is not None and told.stored.root != run.root:
        yield _differs(word, "root", run.root, told.stored.root)


def _ahead(word: Word, fold: Fold, told: Told) -> Finding:
    # With a run that goes on, or an RPC node that lags, it looks the same: this proves nothing.
    expected = f"{word.run.event_sequence} events, by {word.source}"
    if word.is_archive and told.is_closed:
        found = f"a ledger of {fold.next_sequence} events; the last one says that the run is closed"
        return note(Rule.CHAIN_HASH, expected, found)
    found = f"a ledger of {fold.next_sequence} events, whose end nothing proves"
    return Finding(Grade.MISSING, Rule.CHAIN_HASH, expected, found)


def _differs(word: Word, name: str, expected: object, found: object) -> Finding:
    what = f"{name.replace('_', ' ')} {_shown(expected)} by {word.source}"
    return discrepancy(Rule.RUN_ACCOUNT, what, _shown(found))


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
