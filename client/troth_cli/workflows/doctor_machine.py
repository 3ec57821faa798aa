"""The doctor's look at the device: the known-answer test, and a run's duties where one is named.

Owns: measuring, and which checks a run allows. Never: a check of its own; `machine_checks.py` has
them. Imports PyTorch: load it late. Next: `troth_client.participant.measuring`.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

from troth_cli.workflows.checks import CheckResult, Level, Row, refusal, run_checks, untested
from troth_cli.workflows.doctor_run import Membership, Question
from troth_cli.workflows.machine_checks import (
    CHECKS,
    REACH,
    Candidate,
    bounds_result,
    device_result,
)
from troth_client.compression.known_answer import choose_path
from troth_client.errors import ClientError
from troth_client.model.device import Device, choose_device
from troth_client.model.errors import DeviceError
from troth_client.participant.measuring import Measured, measure_machine
from troth_client.runtime.memory import first_line
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.view import Role


def examine_machine(question: Question, state: Path, member: Membership | None) -> list[Row]:
    """Return what is to be said about the device, and about its work for the run."""
    if question.config is None:
        return [Row("device", _known_answer(question))]
    role = Role.TRAINER | Role.WITNESS if member is None else member.role
    measured = _measured(question, question.config, is_juror=bool(role & Role.WITNESS))
    if member is None:
        bounds = bounds_result(measured, question.config)
        return [Row("device", device_result(measured)), Row("bounds", bounds)]
    candidate = Candidate(
        state=state,
        config=question.config,
        role=member.role,
        view=member.view,
        tempo=member.tempo,
        measured=measured,
        reach=_not_here,
        is_member=member.index is not None,
    )
    here = [(name, check) for name, check in CHECKS if name != REACH]
    checks = [(name if name != "disk" else "room", check) for name, check in here]
    return asyncio.run(run_checks(checks, candidate))


async def _not_here() -> CheckResult:
    """Stand for the question about reachability, which `doctor_run.py` asks."""
    return untested("asked elsewhere")


def _known_answer(question: Question) -> CheckResult:
    try:
        with _broken_device():
            device = _device(question)
            path = choose_path(device.torch)
    except ClientError as error:
        return refusal(error)
    if path.reason:
        return CheckResult(Level.WARNING, f"{device.torch}: {path.reason}", "", "It is slower.")
    return CheckResult(Level.OK, f"{device.torch} passes the known-answer test")


def _measured(question: Question, config: RunConfig, *, is_juror: bool) -> Measured | ClientError:
    try:
        with _broken_device():
            device = _device(question)
            return measure_machine(config, device, is_juror=is_juror)
    except ClientError as error:
        return error


def _device(question: Question) -> Device:
    return choose_device(question.device, question.microbatch_sequences, question.precision)


@contextlib.contextmanager
def _broken_device() -> Iterator[None]:
    """Raise DeviceError for what PyTorch says of a device that is there and does not work."""
    try:
        yield
    except RuntimeError as error:
        raise DeviceError(
            "a device that computes",
            first_line(error),
            "Try --device cpu. If that works, look at the driver and at who else uses the device.",
        ) from error
