"""The cost of not showing openings (protocol section 8, P5), and how often it was done.

Owns: the price, which depends on how likely the audit was, and the step, which doubles it.
Never: takes lamports. Next: `troth_attestation/slashing.py`, which limits the amount.
"""

from dataclasses import dataclass

from troth_coordinator.rules.ids import NONE, Lamports

PPM = 10**6
LEAST_REWARDS = 12
"""The price is at least so many rewards."""
REMEMBERED_ROUNDS = 500
"""The step falls back to the first one after more than so many of the target's included rounds."""
LAST_STEP = 3
"""The step that jails, and the last one."""
MAX_LAMPORTS = 2**64 - 1


def openings_price(reward: int, p_ppm: int, sum_ppm: int, limit: int) -> Lamports:
    """Return the lamports of the first refusal of a sampled target, rounded up.

    12 rewards, or 1.8 / q where that is more, with q = p * min(1, limit / sum). `p_ppm` is the
    rate of the target's class, `sum_ppm` the sum of the rates of all included payloads, `limit` the
    most audits of the round. So refusing costs more than what unseen rounds earn. Rates and limit
    below one count as one.
    """
    limit = max(1, limit)
    drawn = 5 * max(1, p_ppm) * limit
    earned = 9 * reward * max(limit * PPM, sum_ppm)
    return Lamports(min(MAX_LAMPORTS, max(LEAST_REWARDS * reward, -(-earned // drawn))))


@dataclass(frozen=True, slots=True)
class Refusals:
    """Refusals of one participant that are still remembered.

    `step` counts them, 0 to 3. `mark` is the number of its included rounds, in all, when the last
    one was decided, `decided_round` the round under way at that moment, or NONE.
    """

    step: int = 0
    mark: int = 0
    decided_round: int = NONE

    @property
    def doublings(self) -> int:
        """How often the price is doubled at this step."""
        return max(0, self.step - 1)


def add_refusal(
    before: Refusals, round_: int, now: int, included_total: int
) -> tuple[Refusals, bool]:
    """Add a refusal of a round, decided while round `now` is under way.

    Returns the refusals and whether this one is a further step. A round opened before the last
    refusal was decided costs the same step: so one outage is one step. `included_total` counts the
    participant's included rounds.
    """
    is_known = before.step > 0 and before.decided_round != NONE
    if is_known and round_ <= before.decided_round:
        return before, False
    remembered = before.step if included_total - before.mark <= REMEMBERED_ROUNDS else 0
    return Refusals(min(LAST_STEP, remembered + 1), included_total, now), True
