"""A member with a seat of an audit: the audit as the chain shows it, and the beginning of its duty.

Owns: the seat, its window, the evidence at hand. Never: says what the judge finds.
Next: audit_driver.py, the member itself.
"""

import asyncio
from typing import Any

from support.audit_driver import AUDIT, FROZEN_AT, ROOT, AuditDriver, Holders, settle, view_at
from support.audit_views import audit_view, seat
from support.views import PARAMS
from troth_attestation.header import header_hash
from troth_client.audit.evidence import LAST_SHARE
from troth_client.audit_round import judge_as_witness
from troth_coordinator.rules.audit_view import AuditStage, AuditView

WITNESS = 1
WINDOW = PARAMS.verdict_commit_slots
EARLY, LATE = FROZEN_AT + 1, FROZEN_AT + WINDOW - WINDOW // LAST_SHARE
END = FROZEN_AT + WINDOW
SEATS = tuple(seat(index) for index in (WITNESS, 2, 3, 4, 0))


def shown(stage: AuditStage = AuditStage.COMMIT, flags: int = 0, **changes: Any) -> AuditView:
    """The audit with our seat at this point; the payload is the one that others may have."""
    about = {
        "seats": (seat(WITNESS, flags), *SEATS[1:]),
        "openings_root": AUDIT.root,
        "header_hash": header_hash(AUDIT.header),
        "canonical_root": ROOT,
        "stage_end": END,
    }
    return audit_view(stage, **(about | changes))


async def begin(driver: AuditDriver, audit: AuditView, slot: int = EARLY) -> asyncio.Task[Any]:
    """Show the audit and let its seat begin."""
    await driver.see(view_at(slot), audit)
    (current,) = driver.tracker.audits(view_at(slot))
    task = driver.start(judge_as_witness(driver.witness, current))
    await settle()
    return task


def ready(driver: AuditDriver, *answers: bytes | None) -> None:
    """Hold payload and weights; holders answer this when they are asked for openings."""
    driver.save_payload()
    driver.save_weights()
    driver.holders = Holders(*answers)
