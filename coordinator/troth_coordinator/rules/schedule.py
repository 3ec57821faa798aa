"""Learning rate of a round (protocol section 5.5): warmup, plateau, linear decay.

Owns: `lr_nano(r)`, in units of 10^-9.
Never: depends on which rounds were void; the round number alone decides.
Next: `exact.py`, which turns it into the constants of a weight step.
"""

from troth_coordinator.rules.config import ScheduleSection
from troth_coordinator.rules.exact import StepConstants, step_constants


def lr_nano(schedule: ScheduleSection, round_: int) -> int:
    """Return the learning rate of a round in 10^-9: integer, 0 from round R on."""
    if round_ < schedule.warmup_rounds:
        return schedule.lr_nano * (round_ + 1) // schedule.warmup_rounds
    if round_ < schedule.decay_from_round:
        return schedule.lr_nano
    left = schedule.rounds - round_
    if left <= 0:
        return 0
    return schedule.lr_nano * left // (schedule.rounds - schedule.decay_from_round)


def constants_of(schedule: ScheduleSection, round_: int) -> StepConstants:
    """Return the fp32 constants a and b of the weight step of a round."""
    return step_constants(lr_nano(schedule, round_), schedule.wd_nano)
