"""One cell of the table: a method at a rate, with its network and its processes, all gone after it.

Owns: namespaces, the fleet of ranks, and naming the rank that ended too early.
Never: trains or counts; `rank.py` does. Next: `study.py`.
"""

import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troth_client.model.shapes import num_parameters
from troth_localnet.fleet import Fleet
from troth_simulation.faults.namespaces import Housed, Namespaces, refusal, run_housed
from troth_simulation.profile.errors import RankEndedError, ShapingError
from troth_simulation.profile.rank import LOOPBACK, RankReport, RankSetup, read_report, run_rank
from troth_simulation.profile.records import MEGABIT, Workload

_LEAST_SECONDS: Final = 300.0
"""So long, at least, may one exchange take before its ranks give up."""
_SLACK: Final = 20
"""As many times longer than its bytes need."""
QUEUE_MILLISECONDS: Final = 50
"""As long as a packet may wait at the end of a cable, as at an ordinary router."""
SUBNET: Final = 233
"""Ranks never speak to the machine itself, so several profiles at once share these addresses."""
CONGESTION_CONTROL: Final = "cubic"
"""The same on every machine. BBR takes such a cable for a faster one: it sent 60 % of bytes again.
"""
_GRACE_SECONDS: Final = 1.0
"""When one rank was killed, the others fail soon; the one to name is the killed one."""

AnyFleet = Fleet[RankSetup] | Fleet[Housed[RankSetup]]


@dataclass(frozen=True, slots=True)
class Cell:
    """A method at a rate in Mbit/s, None for loopback; `num_units` 0 trains the whole schedule.

    A unit is what is timed at once: one step, or so many that one exchange falls in each unit.
    """

    workload: Workload
    method: str
    mbit: int | None
    num_units: int
    unit_steps: int


def check_shaping() -> None:
    """Raise ShapingError where namespaces or token buckets cannot be made."""
    found = refusal()
    if found:
        raise ShapingError(
            "root, the commands ip and tc, and a kernel with namespaces, bridges and tbf",
            found,
            "Run the command as root, or measure on loopback without a bound: --no-shaping.",
        )


def play(cell: Cell) -> list[RankReport]:
    """Run a cell and return the reports of its ranks. Raises RankEndedError, ShapingError.

    However it ends, no process and no namespace of it is left. After SIGKILL of this process its
    ranks end soon, and its network stays: `Namespaces` says how to remove it.
    """
    with tempfile.TemporaryDirectory(prefix="troth-profile-") as name:
        folder = Path(name)
        if cell.mbit is None:
            setups = _setups(cell, folder, [LOOPBACK] * cell.workload.num_ranks)
            return _finished(Fleet(run_rank, setups), setups)
        return _shaped(cell, folder, cell.mbit)


def _shaped(cell: Cell, folder: Path, mbit: int) -> list[RankReport]:
    ranks = range(cell.workload.num_ranks)
    try:
        with Namespaces(
            len(ranks),
            mbit * MEGABIT,
            subnet=SUBNET,
            queue_milliseconds=QUEUE_MILLISECONDS,
            congestion_control=CONGESTION_CONTROL,
        ) as network:
            setups = _setups(cell, folder, [network.interface(rank) for rank in ranks])
            housed = [Housed(network.name(one.rank), run_rank, one) for one in setups]
            return _finished(Fleet(run_housed, housed), setups)
    except subprocess.CalledProcessError as error:
        raise ShapingError(
            f"`{' '.join(error.cmd)}` to work",
            str(error.stderr).strip() or f"exit code {error.returncode}",
            "Repeat the command; or measure on loopback without a bound: --no-shaping.",
        ) from error


def _setups(cell: Cell, folder: Path, interfaces: Sequence[str]) -> list[RankSetup]:
    dense_bits = 8 * 4 * num_parameters(cell.workload.config.model)
    seconds = _SLACK * dense_bits / (cell.mbit * MEGABIT) if cell.mbit else 0.0
    return [
        RankSetup(
            workload=cell.workload,
            method=cell.method,
            rank=rank,
            num_units=cell.num_units,
            unit_steps=cell.unit_steps,
            interface=interface,
            folder=folder,
            timeout_seconds=max(_LEAST_SECONDS, seconds),
        )
        for rank, interface in enumerate(interfaces)
    ]


def _finished(fleet: AnyFleet, setups: Sequence[RankSetup]) -> list[RankReport]:
    """Run a fleet to its end; stop it at once when one of its ranks has failed."""
    with fleet:
        while any(code is None for code in fleet.exit_codes()):
            fleet.wait_any()
            if any(fleet.exit_codes()):
                fleet.wait(_GRACE_SECONDS)
                break
        codes = fleet.exit_codes()
    for rank, code in sorted(enumerate(codes), key=lambda pair: pair[1] or 0):
        if code:
            raise _ended(setups[rank], code)
    return [read_report(setup) for setup in setups]


def _ended(setup: RankSetup, code: int) -> RankEndedError:
    if code < 0:
        found = f"signal {signal.Signals(-code).name} ended it"
        step = "Something killed it; if memory ran out, take fewer ranks or a smaller model."
    else:
        lines = setup.output.read_text(errors="replace").strip().splitlines()
        found = f"it ended with code {code}: {lines[-1] if lines else 'it said nothing'}"
        step = "Repeat the command; report it if it happens again."
    where = f"{setup.method}, rank {setup.rank}"
    return RankEndedError(f"rank {setup.rank} to end after its work", found, step, where)
