"""Compute units and bytes of every instruction: printed, bounded, equal to the committed table."""

import json
import random
import sys
from collections.abc import Iterator

import pytest
from support.program.audits import (
    INCONCLUSIVE,
    LAZY,
    MISMATCH,
    OK,
    UNAVAILABLE,
    AuditDriver,
    Said,
)
from support.program.costs import Rows, render, table
from support.program.costs_audits import FULL
from support.program.heap import HALF, with_heap

from troth_coordinator import artifacts
from troth_coordinator.chain.transactions import MAX_TRANSACTION_BYTES

pytestmark = pytest.mark.long(reason="64 participants in the worst case of every instruction")

BOUNDS = {
    **{"commit_payload": 20_000, "attest": 25_000, "close_round": 180_000},
    **{"freeze_seed": 100_000, "open_audit": 60_000, "post_openings": 60_000},
    **{"commit_verdict": 15_000, "reveal_verdict": 25_000, "settle_audit": 300_000},
    **{"open_case": 60_000, "draw_jury": 50_000, "vote_case": 20_000},
    **{"settle_case": 300_000, "release_escrow": 30_000},
}
"""The project's limits, measured with 64 participants, all of them sampled."""
MAX_IMAGE_BYTES = 700_000
EVERYTHING: tuple[Said, ...] = (
    *(OK, MISMATCH, UNAVAILABLE, INCONCLUSIVE, None),
    *((OK, LAZY), (MISMATCH, LAZY), (INCONCLUSIVE, LAZY)),
)
"""All reports of a seat, with a true sketch or with one that differs from it."""


@pytest.fixture(scope="module")
def rows() -> Iterator[Rows]:
    """The table, on half of the heap: an instruction that needs more memory is refused here.

    Where the heap ends costs no compute unit.
    """
    small = with_heap(artifacts.program_image(), HALF)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artifacts, "program_image", lambda: small)
        yield table()


def test_the_table_is_the_committed_one(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{render(rows)}\n")
    committed = json.loads(artifacts.read_bytes(artifacts.COMPUTE_UNITS))["instructions"]
    assert rows == committed, "run python scripts/gen/compute_units.py"


@pytest.mark.parametrize("name", BOUNDS)
def test_the_promised_bounds_hold(name: str, rows: Rows) -> None:
    assert rows[name]["measured_units"] <= BOUNDS[name]


def test_every_instruction_fits_into_a_transaction(rows: Rows) -> None:
    assert max(row["transaction_bytes"] for row in rows.values()) <= MAX_TRANSACTION_BYTES


def test_no_mix_of_verdicts_costs_more_than_the_table(rows: Rows) -> None:
    """Seats choose what they say: a mix beyond the client's limit would keep an audit for ever."""
    driver, draw = AuditDriver(64, **FULL), random.Random(5)
    driver.start()
    driver.play(1)
    driver.draw(0)
    for target in range(64):
        driver.post(0, target)
    says = {target: draw.choices(EVERYTHING, k=7) for target in range(64)}
    driver.take_all_verdicts(0, {target: said[:3] for target, said in says.items()})
    for first, last in ((3, 5), (5, 7)):
        longer = {}
        for target, said in says.items():
            refusal = driver.attempt(driver.extend_instruction(0, target), driver.cranker)
            assert refusal in ("", "ExtensionNotDue")
            if not refusal:
                longer[target] = said[first:last]
        driver.take_all_verdicts(0, longer)
    for target in range(64):
        driver.settle(0, target)
    for name in ("extend_audit", "settle_audit"):
        assert driver.costs[name].units <= rows[name]["measured_units"], name


def test_the_image_is_small_enough() -> None:
    assert len(artifacts.program_image()) <= MAX_IMAGE_BYTES
