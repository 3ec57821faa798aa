"""Audits for tests of the rules: ordinary values that a test changes where it matters.

Next: views.py for the other accounts.
"""

from dataclasses import replace
from typing import Any

from support.views import RUN_ADDRESS, key
from troth_coordinator.rules.audit_view import (
    AuditFlag,
    AuditKind,
    AuditStage,
    AuditView,
    JurorView,
    SeatFlag,
    SeatView,
)
from troth_coordinator.rules.ids import NONE, ZERO_DIGEST

SEED = b"s" * 32
STAGE_END = 1_060


def seat(
    index: int, flags: int = 0, verdict: int = 0, sketch: tuple[int, ...] = (0,) * 64
) -> SeatView:
    """A seat of a committee."""
    return SeatView(ZERO_DIGEST, sketch, index, verdict, SeatFlag(flags))


def juror(index: int, flags: int = 0, verdict: int = 0) -> JurorView:
    """A member of a jury."""
    return JurorView(ZERO_DIGEST, index, verdict, SeatFlag(flags))


def audit_view(stage: AuditStage = AuditStage.COMMIT, **changes: Any) -> AuditView:
    """The audit of participant 5 in round 9; seats 1, 2, 3 and two more in reserve."""
    made = AuditView(
        version=1,
        bump=255,
        kind=AuditKind.WORK,
        stage=stage,
        outcome=0,
        case_outcome=0,
        flags=AuditFlag(0),
        num_seats=3,
        num_available=5,
        num_jurors=0,
        first_acting=0,
        target=5,
        subject=65_535,
        challenger_index=65_535,
        run=RUN_ADDRESS,
        payer=key(9),
        owner=key(6),
        challenger=ZERO_DIGEST,
        header_hash=ZERO_DIGEST,
        root_vote=ZERO_DIGEST,
        canonical_root=ZERO_DIGEST,
        seed=SEED,
        openings_root=ZERO_DIGEST,
        case_seed=ZERO_DIGEST,
        round=9,
        previous_included=7,
        eligible=0b111111,
        vouchers=0,
        attest_bitmap=0,
        reward_paid=0,
        reward_window=0,
        stage_end=STAGE_END,
        case_end=0,
        case_seed_slot=NONE,
        appeal_end=0,
        prepaid=0,
        bond=0,
        escrow_stake=0,
        escrow_unbonding=0,
        escrow_unvested=0,
        shortfall=0,
        reward_price=0,
        openings_price=0,
        juror_fees=0,
        decided_before=NONE,
        jailed_until=0,
        commit_ends=(0, 0, 0, 0),
        possession=bytes(64),
        seats=tuple(seat(index) for index in (1, 2, 3, 4, 0)),
        jurors=(),
    )
    return replace(made, **changes)
