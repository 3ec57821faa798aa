"""From what was read of a run to one `Observation`.

Owns: every value of the record that follows from accounts. Never: reads the chain or a clock.
Next: `record.py` for the record; `observer.py`, which reads.
"""

from collections.abc import Iterator, Mapping

from troth_cli.observe.record import ParticipantSeen, RunSeen
from troth_cli.view.amounts import number_or_none
from troth_cli.view.chain import key_text
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.expected_members import ExpectedMembers
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.oversight import Oversight, warnings_of
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.progress import (
    attendance,
    can_begin,
    is_transition_due,
    least_to_begin,
    num_pending,
)
from troth_coordinator.rules.reward import Buckets, release
from troth_coordinator.rules.view import (
    EntryFlag,
    EntryView,
    NetworkView,
    ParticipantView,
    Role,
    RoundFlag,
    RoundView,
    RunFlag,
    RunView,
    Status,
)

VOID_STREAK = 2
"""So many void rounds in a row are worth a warning: at three the run halts."""

LastLosses = Mapping[int, tuple[int, int]]
"""The last known loss of a participant by index: its round and micro-nats."""


def run_seen(view: NetworkView, seen: Oversight, newest: RoundView | None) -> RunSeen:
    """Return the run; `seen` tells how well it is audited, `newest` is the round closed last."""
    run = view.run
    attending = attendance(view)
    root, root_round = _newest_root(run, newest)
    return RunSeen(
        run=key_text(run.address),
        phase=run.phase.name.lower(),
        phase_end_slot=number_or_none(run.phase_end_slot),
        is_transition_due=is_transition_due(view),
        round=run.round,
        max_rounds=run.params.max_rounds,
        epoch=run.epoch,
        is_pause_requested=bool(run.flags & RunFlag.PAUSE_REQUESTED),
        void_streak=run.void_streak,
        root=run.root.hex(),
        root_round=run.root_round,
        newest_root=root,
        newest_root_round=root_round,
        checkpoint_every=run.params.checkpoint_every,
        chain_hash=run.chain_hash.hex(),
        reward_pool_lamports=run.reward_pool,
        escrow_lamports=run.total_escrow,
        bonds_lamports=run.total_bonds,
        num_audits=run.num_audits,
        num_eligible_witnesses=seen.num_eligible,
        num_sampled=seen.num_sampled,
        num_auditable=seen.num_auditable,
        capacity=run.params.capacity,
        min_members=run.params.min_members,
        num_required=bitmap.count(attending.required),
        num_acted=bitmap.count(attending.acted),
    )


def _waits(view: NetworkView) -> str:
    needed, expected = least_to_begin(view.run), ExpectedMembers.of(view.run).number
    return (
        f"the run waits for {needed} participants, half of {expected}; {num_pending(view)} are"
        " there. Its authority may begin with them: troth run start"
    )


def _newest_root(run: RunView, newest: RoundView | None) -> tuple[str | None, int | None]:
    """Return the newest root that members agreed on, and the round that began with its weights."""
    is_root = newest is not None and any(newest.canonical_root)
    if newest is None or not is_root or newest.round <= run.root_round:
        return run.root.hex(), run.root_round
    return newest.canonical_root.hex(), newest.round


def participants_seen(
    view: NetworkView, accounts: Mapping[int, ParticipantView | None], losses: LastLosses
) -> tuple[ParticipantSeen, ...]:
    """Return everybody on the roster; `accounts` by index."""
    return tuple(
        participant_seen(index, entry, view, accounts.get(index), losses.get(index))
        for index, entry in taken_entries(view)
    )


def taken_entries(view: NetworkView) -> list[tuple[int, EntryView]]:
    """Return the entries that somebody holds or has held, with their indices."""
    return [(i, entry) for i, entry in enumerate(view.entries) if entry.status != Status.EMPTY]


def participant_seen(
    index: int,
    entry: EntryView,
    view: NetworkView,
    account: ParticipantView | None,
    loss: tuple[int, int] | None = None,
) -> ParticipantSeen:
    """Return one entry of the roster."""
    buckets = Buckets(entry.bucket_window, entry.bucket_amount)
    unvested, vested = release(
        buckets, run_clock(view.run, view.slot), view.run.params.vesting_slots
    )
    acted, joined = attendance(view), number_or_none(entry.joined_round)
    if loss is not None and joined is not None and loss[0] < joined:
        loss = None  # of somebody who held the index before
    return ParticipantSeen(
        index=index,
        owner=key_text(entry.owner),
        session=key_text(entry.session),
        status=status_text(entry, view.run),
        role=role_text(entry.roles),
        is_leaving=bool(entry.flags & EntryFlag.LEAVING),
        has_acted=bool(acted.acted >> index & 1) if acted.required >> index & 1 else None,
        stake_lamports=entry.stake,
        claimable_lamports=entry.claimable + vested,
        unvested_lamports=unvested.unvested,
        joined_round=joined,
        num_included=entry.included_total,
        last_included_round=number_or_none(entry.last_included),
        return_round=number_or_none(entry.return_round),
        jailed_until_round=number_or_none(entry.jailed_until_round),
        rounds_served=entry.rounds_served,
        misses_in_row=entry.misses_in_row,
        strikes=entry.strikes,
        offences=entry.work_faults,
        is_frozen=entry.frozen > 0,
        endpoint=None if account is None else account.endpoint,
        last_loss_round=None if loss is None else loss[0],
        last_loss_micro=None if loss is None else loss[1],
    )


def status_text(entry: EntryView, run: RunView) -> str:
    """Return the status of an entry for people.

    At the end of a run the program lists its members as pending, as between two epochs. No round
    follows then, so they are finished.
    """
    is_member = entry.status in (Status.PENDING, Status.ACTIVE)
    if run.phase == Phase.FINISHED and is_member:
        return "finished" if entry.active_round != NONE else "never active"
    return entry.status.name.lower()


def role_text(roles: Role) -> str:
    """Return `trainer`, `witness` or `both`."""
    both = Role.TRAINER | Role.WITNESS
    return "both" if roles == both else str(roles.name).lower()


def all_warnings(view: NetworkView, seen: Oversight) -> Iterator[str]:
    """Yield in words what people should know about a run, the most important first."""
    run = view.run
    if run.phase == Phase.HALTED:
        yield "the run is halted: too many rounds closed void, or not half of its members stay"
    elif (
        run.phase == Phase.WAITING_FOR_MEMBERS
        and can_begin(view, by_authority=True)
        and not can_begin(view)
    ):
        yield _waits(view)
    elif run.phase == Phase.PAUSED:
        yield "the run is paused by its authority"
    elif run.void_streak >= VOID_STREAK:
        yield f"the last {run.void_streak} rounds closed void: nothing was learnt in them"
    if view.round is not None and view.round.flags & RoundFlag.FORCED_VOID:
        yield "the open round closes void: half of the members lack a payload of the last one"
    if run.phase != Phase.FINISHED:
        yield from warnings_of(seen)
