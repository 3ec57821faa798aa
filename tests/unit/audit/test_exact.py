"""The exact tests of an auditor: what opened tiles alone say, and verdicts that contradict it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from solders.pubkey import Pubkey
from support.fields import assert_fields
from support.judged_work import (
    CONFIG,
    NUM_DRAWN,
    NUM_TILES,
    ROUND,
    RULE,
    SIGMA,
    TARGET,
    committed,
    trained,
)
from support.judged_work import RUN as RUN_BYTES
from support.opened import header as header_of

from troth_attestation.header import SIGNATURE_BYTES, encode
from troth_attestation.openings import openings_root
from troth_attestation.quorum import CaseOutcome
from troth_attestation.signs import Signs
from troth_attestation.verdict import VerdictKind
from troth_audit.replay.evidence import Collector
from troth_audit.replay.exact import Exact
from troth_audit.replay.findings import Finding, Grade, Rule
from troth_audit.replay.ports import Terms
from troth_audit.replay.told import RoundTold, Told
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.audit_view import AuditKind

OK, MISMATCH, UNAVAILABLE, INCONCLUSIVE = VerdictKind
RUN = Pubkey(RUN_BYTES)
HASH, PAYLOAD = b"h" * 32, b"payload"
SEAT, JUROR = 3, 4


@dataclass
class Held:
    """Sources with these bytes by kind; `lies` are what lies there instead."""

    bytes_: dict[str, bytes]
    lies: str = ""

    def get(self, kind: str, key: bytes, most_bytes: int) -> bytes | None:
        return self.bytes_.get(kind)

    def instead(self, kind: str, key: bytes, most_bytes: int) -> str:
        return self.lies


class Votes:
    """Weights that read the one payload."""

    def __init__(self, signs: Signs | str) -> None:
        self.signs = signs

    def decode(self, payload: bytes, root: bytes) -> Signs | str:
        return self.signs


def filled(kind: type[Event], **fields: Any) -> Any:
    """An event with zeros in the other fields."""
    empty: dict[str, Any] = {"run": RUN, "slot": 0, "body": b""}
    for name, annotation in kind.__annotations__.items():
        if name != "kind":
            empty.setdefault(name, b"" if "bytes" in annotation else 0)
    return kind(**{**empty, **fields})


@pytest.fixture(scope="module")
def work() -> Any:
    """One audit of honest work."""
    return trained(3)


def judged(
    work: Any,
    shown: VerdictKind,
    paid: int = 0,
    *,
    change: Callable[[Any], Any] = lambda signs: signs,
    data: bytes | None = b"",
    lies: str = "",
    vote: VerdictKind | None = None,
) -> tuple[list[Finding], dict[str, int]]:
    """The findings about an audit in which one seat showed a verdict, and the counts."""
    data = work.data if data == b"" else data
    header = header_of(ROUND, TARGET, ROUND - 1, work.after, work.before)
    held = {"header": encode(replace(header, run=RUN_BYTES)) + bytes(SIGNATURE_BYTES)}
    held |= {"payload": PAYLOAD} | ({} if data is None else {"openings": data})
    section = CONFIG.judge.model_copy(update={"openings_tiles": NUM_DRAWN})
    config = CONFIG.model_copy(update={"judge": section})
    terms = Terms(b"", RUN_BYTES, b"", config, 1, NUM_TILES, len(PAYLOAD))
    told = Told(1)
    round_ = RoundTold(filled(of_rounds.RoundOpened, round=ROUND), {})
    round_.commits[TARGET] = filled(of_rounds.PayloadCommitted, header_hash=HASH)
    round_.seed = filled(of_rounds.SeedFrozen, seed=SIGMA)
    told.rounds[ROUND] = round_
    where = {"round": ROUND, "target": TARGET}
    root = openings_root(work.data)
    events = [
        filled(of_audits.OpeningsPosted, **where, root=root),
        filled(of_audits.VerdictRevealed, **where, index=SEAT, verdict=int(shown)),
        filled(of_audits.AuditSettled, **where, paid=paid),
    ]
    case = {**where, "audit_kind": int(AuditKind.WORK)}
    if vote is not None:
        fields = {**case, "index": JUROR, "verdict": int(vote)}
        events.append(filled(of_audits.JurorVoteRevealed, **fields))
        outcome = int(CaseOutcome.ACQUITTED)
        events.append(filled(of_audits.CaseSettled, **case, outcome=outcome, paid=1 << JUROR))
    events.append(filled(of_audits.AuditClosed, **case))
    with ThreadPoolExecutor(1) as threads:
        signs = change(work.signs)
        collector: Any = Collector(terms, Held(held, lies), Votes(signs))  # type: ignore[arg-type]
        exact: Exact[Any] = Exact(told, collector, lambda one: one, RULE, threads, range(100))
        found = [one for event in events for one in exact.check(event)]
        assert exact._open == {}, "an audit that is closed is forgotten"
        found += exact.end(None)
    return found, dict(exact.counts())


def other_sign(signs: Signs) -> Signs:
    """Votes of which some go the other way."""
    return replace(signs, negative=~signs.negative & signs.present[:, None])


def malformed(_: Signs) -> str:
    return "a wrong length"


def test_honest_work_and_its_verdict_fit(work):
    found, counts = judged(work, OK, 1 << SEAT)
    assert found == []
    assert counts == {"exact_tests": 1, "openings_not_kept": 0}


@pytest.mark.parametrize("change", [other_sign, malformed])
@pytest.mark.parametrize(("paid", "grade"), [(1 << SEAT, Grade.DISCREPANCY), (0, Grade.NOTE)])
def test_a_seat_that_lets_another_payload_pass_is_named(work, change, paid, grade):
    """The witness says ok without a look: the payload is not what the opened tiles lead to."""
    (found,), _ = judged(work, OK, paid, change=change)
    assert_fields(found, grade=grade, rule=Rule.VERDICT, round=ROUND, participant=SEAT)
    assert f"mismatch about participant {TARGET}" in found.expected
    assert found.found == "ok"


@pytest.mark.parametrize("shown", [MISMATCH, UNAVAILABLE, INCONCLUSIVE])
def test_other_verdicts_on_such_a_payload_contradict_nothing(work, shown):
    found, _ = judged(work, shown, 1 << SEAT, change=other_sign)
    assert found == []


@pytest.mark.parametrize("shown", list(VerdictKind))
def test_no_verdict_contradicts_work_that_only_a_gradient_can_judge(work, shown):
    found, _ = judged(work, shown, 1 << SEAT)
    assert found == []


def test_a_juror_that_acquits_against_the_open_tiles_is_named(work):
    (found,), counts = judged(work, MISMATCH, 1 << SEAT, change=other_sign, vote=OK)
    assert_fields(found, grade=Grade.DISCREPANCY, rule=Rule.VERDICT, participant=JUROR)
    assert counts["exact_tests"] == 1


@pytest.mark.parametrize("shown", [OK, MISMATCH])
def test_openings_that_prove_nothing_cannot_be_judged(work, shown):
    """The bytes have the root on chain, and are cut short: everybody must say unavailable."""
    (found,), _ = judged(work, shown, 1 << SEAT, data=work.data[:-1])
    assert found.expected.startswith(f"unavailable about participant {TARGET}")


def test_a_value_that_is_no_number_is_a_mismatch(work):
    broken = replace(work, after=with_nan(work))
    sampled = replace(work.sampled, root_after=broken.after.tree.root)
    broken = replace(broken, sampled=sampled)
    (found,), _ = judged(broken, OK, 1 << SEAT)
    assert found.expected.startswith("mismatch")


def with_nan(work: Any) -> Any:
    tiles = work.after.u.copy()
    tiles[work.sampled.tiles[0], 0, 0] = np.nan
    return committed(tiles)


def test_openings_that_nobody_kept_are_counted_and_fail_nothing(work):
    found, counts = judged(work, OK, 1 << SEAT, data=None)
    assert found == []
    assert counts == {"exact_tests": 0, "openings_not_kept": 1}


def test_other_bytes_in_place_of_openings_are_named(work):
    (found,), _ = judged(work, OK, 1 << SEAT, data=None, lies="5 bytes with another hash")
    assert_fields(found, grade=Grade.DISCREPANCY, rule=Rule.OPENINGS, participant=TARGET)
