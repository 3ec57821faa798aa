"""The findings that a replay keeps for a later process: as many of each grade as a report has."""

from collections.abc import Iterator
from typing import Any

from solders.pubkey import Pubkey

from troth_audit.replay.auditor import Replay
from troth_audit.replay.findings import Finding, Grade, Rule, discrepancy, note
from troth_audit.replay.replayed import Replayed
from troth_audit.replay.report import MOST_FINDINGS
from troth_audit.replay.told import Told
from troth_coordinator.chain.event_types_life import RunCreated


class Noisy(Replayed[str]):
    """A replay in which strangers made a thousand harmless faults before the one that counts."""

    def begin(self, genesis_root: bytes) -> Iterator[Finding]:
        yield from (note(Rule.HEADER, "a header", "another") for _ in range(MOST_FINDINGS + 1))
        yield discrepancy(Rule.STATE_ROOT, "a root", "another")

    def end_of_ledger(self) -> Iterator[Finding]:
        yield from ()


def test_no_number_of_notes_hides_a_discrepancy_from_a_later_process() -> None:
    nothing: Any = None
    replay = Replay(nothing, nothing, Noisy(nothing), nothing, range(1))
    key = Pubkey.default()
    created = RunCreated(
        run=key,
        slot=1,
        body=b"",
        run_id=bytes(32),
        authority=key,
        council=key,
        config_hash=bytes(32),
        manifest_hash=bytes(32),
        genesis_root=bytes(32),
        params=nothing,
    )
    found = [*replay.take(Told(1), created), *replay.finish()]
    assert len(found) == MOST_FINDINGS + 2
    kept = [one.grade for one in replay.found]
    assert kept.count(Grade.NOTE) == MOST_FINDINGS
    assert kept.count(Grade.DISCREPANCY) == 1
