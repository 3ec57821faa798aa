"""Prospects: what one participant should earn in a run as it stands now.

Owns: counting who takes part, with a newcomer among them. Never: a formula; `rules/earnings.py` has
them. Next: `machine_checks.py` and `doctor.py`, which show the numbers.
"""

from dataclasses import dataclass
from fractions import Fraction

from troth_attestation.sampling import limit
from troth_cli.slot_time import SlotTime
from troth_coordinator.chain.transactions import FEE_PER_SIGNATURE_LAMPORTS
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.earnings import Crowd, Earnings, earnings, rounds_of_a_day
from troth_coordinator.rules.membership import sets_at_open
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, Role, Status


@dataclass(frozen=True, slots=True)
class Tempo:
    """The length of a slot, and of a round in slots."""

    slot: SlotTime
    round_slots: Fraction

    @property
    def round_seconds(self) -> float:
        """The length of a round."""
        return self.slot.seconds(self.round_slots)


def prospects(view: NetworkView, role: Role, tempo: Tempo, *, is_member: bool) -> Earnings:
    """Return what a participant in this role should earn, from now on."""
    run = view.run
    day = rounds_of_a_day(tempo.round_slots, tempo.slot.micros)
    rounds = max(0, min(day, run.params.max_rounds - run.round))
    crowd = crowd_with(view, role, is_member=is_member)
    return earnings(run.params, run.reward_pool, crowd, role, rounds, FEE_PER_SIGNATURE_LAMPORTS)


def crowd_with(view: NetworkView, role: Role, *, is_member: bool) -> Crowd:
    """Return the members of the next round, with a newcomer in this role among them."""
    run, params = view.run, view.run.params
    sets = sets_at_open(view.entries, run.round, params)
    trainers, eligible, members = map(bitmap.count, (sets.trainers, sets.eligible, sets.members))
    if run.phase in (Phase.WAITING_FOR_MEMBERS, Phase.WARMUP):
        waiting = [one for one in view.entries if one.status in (Status.PENDING, Status.ACTIVE)]
        members = len(waiting)
        trainers = sum(bool(one.roles & Role.TRAINER) for one in waiting)
        eligible = sum(bool(one.roles & Role.WITNESS) for one in waiting)
    more = 0 if is_member else 1
    trainers += more * bool(role & Role.TRAINER)
    judges = max(1, eligible + more * bool(role & Role.WITNESS))
    cap = limit(params.audit_cap, params.seat_load, 1, 0, (1 << judges) - 1)
    return Crowd(max(1, trainers), judges, max(1, members + more), cap)
