"""The checks of a machine against a run: disk, memory, time for each duty, bounds, earnings.

Owns: comparing what was measured with the windows of a run.
Never: measures; `troth_client.participant.measuring` does. Imports PyTorch: load it late.
Next: `join_checks.py` for what needs no device; `doctor.py`, which makes the same checks.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Final

from troth_attestation.verdict import VerdictKind
from troth_cli.errors import BoundsError, MachineTooSlowError
from troth_cli.view.amounts import sol
from troth_cli.workflows.checks import (
    Check,
    CheckResult,
    Level,
    Registry,
    kind_of,
    refusal,
    untested,
)
from troth_cli.workflows.disk import check_disk
from troth_cli.workflows.prospects import Tempo, prospects
from troth_client.errors import ClientError
from troth_client.participant.measuring import Measured
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.earnings import Earnings
from troth_coordinator.rules.view import NetworkView, Role

REACH: Final = "reach"
HALF: Final = 2
"""Work should take half of its window at most: sending and a busy machine need the rest."""
_LESS_MEMORY: Final = (
    "Close other programs, take a smaller --micro-batch, or use a machine with more memory."
)
_UNMEASURED: Final = untested("nothing was measured; see device")


Measurement = Measured | ClientError | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A machine that may take part in a run.

    `measured` is the error where that failed, None where nobody measured. `slower_by` says what the
    measured payload lacked beside those of the run: other ranks, compiled kernels.
    """

    state: Path
    config: RunConfig
    role: Role
    view: NetworkView
    tempo: Tempo
    measured: Measurement
    reach: Callable[[], Awaitable[CheckResult]]
    is_member: bool = False
    slower_by: str = ""

    @property
    def earnings(self) -> Earnings:
        """The pay to expect as one member more, or as the member that it is."""
        return prospects(self.view, self.role, self.tempo, is_member=self.is_member)


async def check_device(candidate: Candidate) -> CheckResult:
    """Say what computes here and whether it applies payloads exactly."""
    return device_result(candidate.measured)


async def check_bounds(candidate: Candidate) -> CheckResult:
    """Tell whether the judge's bounds call honest work of this device ok."""
    return bounds_result(candidate.measured, candidate.config)


def device_result(found: Measurement) -> CheckResult:
    """Say what computes here, from what was measured."""
    if found is None:
        return _UNMEASURED
    if not isinstance(found, Measured):
        return refusal(found, can_go_on=False)
    if found.apply_reason:
        return CheckResult(
            Level.WARNING,
            f"{found.device}; it applies on the processor: {found.apply_reason}",
            "a device that passes the known-answer test",
            "It works, and is slower.",
        )
    return CheckResult(Level.OK, f"{found.device} passes the known-answer test")


def bounds_result(found: Measurement, config: RunConfig) -> CheckResult:
    """Tell whether the judge's bounds call honest work of this device ok, as measured."""
    if not isinstance(found, Measured):
        return _UNMEASURED
    bound = config.judge.ok_bound_micro / 1e6
    text = f"honest work is {found.verdict.name.lower()}"
    if found.error is not None:
        text += f", {found.error:.6f} from the reference"
    values = {"verdict": found.verdict.name.lower(), "error": found.error, "bound": bound}
    if found.verdict is VerdictKind.OK:
        return CheckResult(Level.OK, text, f"at most {bound:g}", values=values)
    return CheckResult(
        Level.REFUSED,
        text,
        f"ok, at most {bound:g}",
        "Try --device cpu, and `troth calibrate` for details: audits would not pay this device.",
        kind=kind_of(BoundsError),
        can_go_on=True,
        values=values,
    )


async def check_room(candidate: Candidate) -> CheckResult:
    """Compare the disk with what the run may need."""
    warning = check_disk(candidate.state, candidate.config, candidate.view.run.params)
    if warning:
        return CheckResult(Level.WARNING, warning, "", "Free some space, or name another --state.")
    return CheckResult(Level.OK, f"room for the whole run in {candidate.state}")


def when_measured(compare: Callable[[Candidate, Measured], CheckResult]) -> Check[Candidate]:
    """Make a check of what needs the measurements; it is not tested where there are none."""

    @wraps(compare)
    async def check(candidate: Candidate) -> CheckResult:
        found = candidate.measured
        return compare(candidate, found) if isinstance(found, Measured) else _UNMEASURED

    return check


@when_measured
def check_memory(candidate: Candidate, found: Measured) -> CheckResult:
    """Compare the memory that a member needs with what this machine has.

    One that trains and witnesses recomputes another's gradient while it computes its own, both on
    its device. Beside a GPU, the processor computes a juror's alone.
    """
    is_both = candidate.role == Role.TRAINER | Role.WITNESS
    has_card = found.device_peak_bytes is not None
    needed_bytes = found.peak_bytes + (is_both and not has_card) * found.work_bytes
    pairs = [("memory", needed_bytes, found.room_bytes)]
    if found.device_peak_bytes is not None and found.device_room_bytes is not None:
        on_device = (1 + is_both) * found.device_peak_bytes
        pairs.append((found.device, on_device, found.device_room_bytes))
    values = {"needed_bytes": needed_bytes, "room_bytes": found.room_bytes}
    text = ", ".join(f"{_gb(room)} of {name}" for name, _needed, room in pairs)
    needed = ", ".join(_gb(each) for _name, each, _room in pairs)
    tight = [name for name, each, room in pairs if 10 * each > 9 * room]
    advice = _LESS_MEMORY if tight else ""
    level = Level.WARNING if tight else Level.OK
    return CheckResult(level, text, needed, advice, values=values)


@when_measured
def check_commit(candidate: Candidate, found: Measured) -> CheckResult:
    """Compare a payload with the Commit phase."""
    if not candidate.role & Role.TRAINER:
        return untested("a witness sends no payload")
    slots = candidate.view.run.params.commit_slots
    return _within("a payload", (found.payload_seconds, 0.0), candidate, slots)


@when_measured
def check_verdict(candidate: Candidate, found: Measured) -> CheckResult:
    """Compare a judgement with the window for verdicts, while this machine may be training."""
    if not candidate.role & Role.WITNESS:
        return untested("a trainer takes no seat")
    what, payload = "a judgement", 0.0
    if candidate.role & Role.TRAINER:
        what, payload = "a judgement after a payload", found.payload_seconds
    slots = candidate.view.run.params.verdict_commit_slots
    return _within(what, (payload, found.judgement_seconds), candidate, slots)


@when_measured
def check_jury(candidate: Candidate, found: Measured) -> CheckResult:
    """Compare a juror's gradient, on one thread of the processor, with the jury's window."""
    if not candidate.role & Role.WITNESS:
        return untested("a trainer sits in no jury")
    slots = candidate.view.run.params.jury_commit_slots
    return _within("a juror's gradient", (0.0, found.jury_seconds), candidate, slots)


@when_measured
def check_load(candidate: Candidate, found: Measured) -> CheckResult:
    """Compare the work of an average round with the length of a round."""
    seats = float(candidate.earnings.seats)
    payload = found.payload_seconds if candidate.role & Role.TRAINER else 0.0
    params = candidate.view.run.params
    slots = params.commit_slots + params.attest_slots
    work = (payload, seats * found.judgement_seconds)
    return _within(f"a round with {seats:.2g} judgements", work, candidate, slots)


async def check_reach(candidate: Candidate) -> CheckResult:
    """Say whether others can reach this machine."""
    return await candidate.reach()


async def check_pay(candidate: Candidate) -> CheckResult:
    """Say what a day should bring less fees."""
    each = candidate.earnings
    day = each.day_lamports
    values = {
        "day_lamports": day,
        "rounds": each.rounds,
        "reward_lamports": float(each.reward),
        "seat_lamports": float(each.seat_pay),
        "fee_lamports": float(each.fees),
        "pool_rounds": each.pool_rounds,
    }
    text = f"about {sol(day)} in {each.rounds} rounds, less fees of {sol(int(each.fees))} each"
    needed = "more than the machine costs"
    if day > 0:
        return CheckResult(Level.OK, text, needed, values=values)
    why = "The pool is empty." if each.pool_rounds == 0 else "Fees are higher than the pay."
    return CheckResult(
        Level.WARNING, text, needed, f"{why} `troth run economics` says more.", values=values
    )


def _within(what: str, work: tuple[float, float], candidate: Candidate, slots: int) -> CheckResult:
    """Compare the seconds of a payload and of other work with a window of slots.

    A payload that was measured slower than it will be refuses nobody.
    """
    window = candidate.tempo.slot.seconds(slots)
    payload, other = work
    seconds = payload + other
    values = {"seconds": seconds, "window_seconds": window}
    slower_by = candidate.slower_by if payload else ""
    found = f"{what} takes {seconds:.3g} s{slower_by and f' {slower_by}'}"
    needed = f"{window:.3g} s ({slots} slots)"
    if HALF * seconds <= window:
        return CheckResult(Level.OK, found, needed, values=values)
    if seconds <= window:
        advice = "It leaves little time: run nothing else on this machine."
        return CheckResult(Level.WARNING, found, needed, advice, values=values)
    if slower_by and other <= window:
        advice = "Nobody measured the payloads that it will make: they must be as much faster."
        return CheckResult(Level.WARNING, found, needed, advice, values=values)
    return CheckResult(
        Level.REFUSED,
        found,
        f"at most {needed}",
        "Use a faster device or more --threads; late work is not paid, and silence is fined.",
        kind=kind_of(MachineTooSlowError),
        can_go_on=True,
        values=values,
    )


def _gb(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.2f} GB"


CHECKS: Final[Registry[Candidate]] = (
    ("device", check_device),
    ("disk", check_room),
    ("memory", check_memory),
    ("commit", check_commit),
    ("verdict", check_verdict),
    ("jury", check_jury),
    ("load", check_load),
    ("bounds", check_bounds),
    (REACH, check_reach),
    ("pay", check_pay),
)
RETURN_CHECKS: Final[Registry[Candidate]] = (("disk", check_room),)
"""The checks of a member that comes back."""
