"""Views of a chain for tests: ordinary values that a test changes where it matters."""

from dataclasses import replace
from typing import Any

from troth_coordinator.rules.ids import NO_INDEX, NONE, ZERO_DIGEST
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import (
    BallotView,
    EntryFlag,
    EntryView,
    NetworkView,
    ParticipantView,
    Role,
    RoundFlag,
    RoundView,
    RunFlag,
    RunView,
    SeedStatus,
    Status,
    TicketView,
)

BOTH = Role.TRAINER | Role.WITNESS
PARAMS = ChainParams.localnet().to_view()
RUN_ADDRESS = b"\xaa" * 32


def key(number: int) -> bytes:
    """Return a 32-byte key that is easy to tell apart."""
    return bytes([number % 256]) * 32


def entry(number: int = 1, **changes: Any) -> EntryView:
    """Return an active member that trains and witnesses."""
    made = EntryView(
        owner=key(number),
        session=key(number + 100),
        next_session=ZERO_DIGEST,
        ready_root=ZERO_DIGEST,
        stake=PARAMS.min_stake_lamports,
        claimable=0,
        bucket_window=(0, 0, 0),
        bucket_amount=(0, 0, 0),
        joined_round=0,
        active_round=0,
        last_included=NONE,
        ready_round=NONE,
        return_round=0,
        inactive_round=NONE,
        jailed_until_round=0,
        left_round=NONE,
        rounds_served=0,
        included_since_strike=0,
        strike_rounds=(NONE, NONE, NONE),
        misses_in_row=0,
        deadline_misses_in_row=0,
        status=Status.ACTIVE,
        roles=BOTH,
        flags=EntryFlag(0),
        strikes=0,
        unproven_rounds=(NONE, NONE, NONE),
        openings_fault_round=NONE,
        audits=0,
        targets=0,
        frozen=0,
        work_faults=0,
        seat_faults=0,
        unbonding=0,
        last_action=0,
        outage_start=NONE,
        outage_end=NONE,
        fined_outage=NONE,
        reveal_fault_round=NONE,
        included_total=0,
        openings_mark=0,
        withheld=0,
        withheld_from=0,
        probation_round=NONE,
        decided_round=(NONE, NONE, NONE, NONE),
        openings_step=0,
        pending_kinds=0,
    )
    return replace(made, **changes)


EMPTY = entry(0, owner=ZERO_DIGEST, status=Status.EMPTY, roles=Role(0))
BALLOT = BallotView(ZERO_DIGEST, ZERO_DIGEST, 0, NONE, 0, bytes(64))


def roster(*entries: EntryView) -> tuple[EntryView, ...]:
    """Return 64 entries, empty after the given ones."""
    return (*entries, *[EMPTY] * (64 - len(entries)))


def round_view(ballots: dict[int, BallotView] | None = None, **changes: Any) -> RoundView:
    """Return round 7 with four members that all train; `ballots` by index."""
    made = RoundView(
        version=1,
        bump=255,
        flags=RoundFlag(0),
        seed_status=SeedStatus.NONE,
        position=7,
        run=RUN_ADDRESS,
        payer=key(9),
        round=7,
        epoch=0,
        cursor=700,
        open_slot=1_000,
        commit_end_slot=NONE,
        close_slot=NONE,
        seed_slot=NONE,
        reward_paid=0,
        reward_window=0,
        base_round=6,
        slot_hash=ZERO_DIGEST,
        seed=ZERO_DIGEST,
        canonical_root=ZERO_DIGEST,
        members=0b1111,
        trainers=0b1111,
        eligible=0b1111,
        is_new=0b1111,
        committed=0,
        attested=0,
        included=0,
        struck=0,
        freeze_clock=NONE,
        close_clock=NONE,
        requested=0,
        sampled=0,
        audited=0,
        unpaid=0,
        reward_price=0,
        price_base=0,
        price_new=0,
        withheld=0,
        probation=0,
        ballots=tuple((ballots or {}).get(index, BALLOT) for index in range(64)),
    )
    return replace(made, **changes)


RUN = RunView(
    address=RUN_ADDRESS,
    version=1,
    bump=255,
    vault_bump=255,
    roster_bump=255,
    phase=Phase.COMMIT,
    resume_phase=Phase.COMMIT,
    flags=RunFlag(0),
    run_id=key(1),
    authority=key(2),
    council=key(3),
    funder=key(2),
    roster=key(4),
    vault=key(5),
    config_hash=key(6),
    manifest_hash=key(7),
    genesis_root=key(8),
    root=key(8),
    chain_hash=ZERO_DIGEST,
    created_slot=1,
    epoch=0,
    round=7,
    cursor=700,
    root_round=0,
    root_cursor=0,
    restart_round=0,
    restart_root_round=0,
    phase_start_slot=1_000,
    phase_end_slot=1_120,
    quorum_slot=NONE,
    next_checkpoint_round=20,
    base_round=6,
    void_streak=0,
    seeds_pending=0,
    paused_at_slot=NONE,
    pause_window_start_slot=0,
    pause_used_slots=0,
    pause_total_slots=0,
    params_requested_slot=NONE,
    finished_slot=NONE,
    event_sequence=0,
    num_participants=4,
    num_rounds=16,
    num_checkpoints=0,
    total_stake=0,
    total_unbonding=0,
    total_unvested=0,
    total_claimable=0,
    total_bonds=0,
    total_escrow=0,
    reward_pool=0,
    vault_rent=0,
    params=PARAMS,
    pending_params=PARAMS,
    num_audits=0,
    audit_epoch=0,
    sampled=0,
    accused=0,
    convicted=(0, 0, 0, 0),
    lost_seeds=0,
    waiting_since=NONE,
    expected_admitted=0,
    expected_members=0,
    expected_before=0,
    expected_epoch=0,
    total_withheld=0,
    created=PARAMS,
)


def run_view(**changes: Any) -> RunView:
    """Return a run in the Commit phase of round 7."""
    return replace(RUN, **changes)


def network(
    slot: int = 1_010,
    run: RunView | None = None,
    entries: tuple[EntryView, ...] | None = None,
    round_: RoundView | None = None,
) -> NetworkView:
    """Return a view of four members in the Commit phase of round 7."""
    return NetworkView(
        slot=slot,
        run=run or run_view(),
        entries=entries or roster(*(entry(number) for number in range(1, 5))),
        round=round_ or round_view(),
        previous_round=None,
    )


def participant(**changes: Any) -> ParticipantView:
    """Return the account of the owner of entry 1, who is owed nothing there."""
    made = ParticipantView(
        version=1,
        bump=255,
        run=key(10),
        owner=key(1),
        payer=key(1),
        index=NO_INDEX,
        admitted=False,
        barred=False,
        endpoint="",
        tickets=(TicketView(0, 0),) * 8,
        claimable=0,
        withdrawn_total=5,
        claimed_total=5,
        manifest_round=NONE,
        manifest_hash=ZERO_DIGEST,
        manifest_uri="",
        record=None,
    )
    return replace(made, **changes)
