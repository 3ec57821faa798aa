"""Observations of a run for tests of how they are shown."""

from dataclasses import replace
from typing import Any

from support.views import entry, network, roster, run_view
from troth_audit.rounds import ClosedRound
from troth_cli.observe.fold import participants_seen, run_seen
from troth_cli.observe.record import Observation, RoundSeen
from troth_cli.observe.time_left import TimeLeft
from troth_client.telemetry.losses import RoundLoss
from troth_coordinator.rules.ids import Bitmap
from troth_coordinator.rules.oversight import Oversight

NAT = 10**6
SEEN = Oversight(num_eligible=4, num_sampled=2, num_auditable=1, p_base_ppm=1)


def round_seen(round_: int, loss: int | None = 3 * NAT, **changes: Any) -> RoundSeen:
    """A closed round with this mean loss, from all of its four headers."""
    chain = ClosedRound(round_, round_ * 100, round_ * 100 + 90, 4, 4, 4, 4, Bitmap(0b1111), False)
    chain = replace(chain, **changes)
    found = chain.num_included if loss is not None else 0
    return RoundSeen(chain, RoundLoss(loss, loss, found))


def observation(num_rounds: int = 3, num_people: int = 4, **changes: Any) -> Observation:
    """An ordinary run of 20 rounds after so many of them."""
    people = roster(*(entry(number + 1) for number in range(num_people)))
    view = network(run=run_view(round=num_rounds), entries=people)
    made = Observation(
        slot=view.slot,
        slots_left=30,
        run=run_seen(view, SEEN, None),
        rounds=tuple(round_seen(number, (5 - number % 4) * NAT) for number in range(num_rounds)),
        first_round=0,
        num_dropped=0,
        participants=participants_seen(view, {}, {0: (1, 3 * NAT)}),
        cases=(),
        closed=(),
        is_closed_cut=False,
        slashes=(),
        is_slash_record_cut=False,
        warnings=(),
        time_left=TimeLeft(17, reason="too few rounds have closed"),
        age_seconds=0.0,
        trouble="",
        is_gone=False,
        revision=1,
    )
    return replace(made, **changes)
