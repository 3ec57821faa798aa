"""Measure this machine: one payload and one judgement of a run's model, timed, with the memory.

Owns: what is timed, on tokens drawn here and weights of a seed, so that no data is needed.
Never: compares with a run's windows or deposits anything; the command line does, before it joins.
Next: `../calibration/rehearsal.py` for the payload, `../calibration/comparison.py`.

The payload is computed on the device that will train, in its microbatch. It is judged in reference
mode: fp32 on one thread of the processor in the config's microbatch, as a juror computes. So one
pass times a trainer, a witness and a juror, and shows whether the judge's bounds fit this device.
A machine that will sit in no jury never computes in the config's microbatch: it may lack the
memory.
"""

import contextlib
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from troth_attestation.measure import Own
from troth_attestation.pieces import Float32
from troth_attestation.verdict import VerdictKind
from troth_attestation.work import yardstick_of
from troth_client.audit.recompute import num_threads, recompute, recompute_reference
from troth_client.calibration.comparison import Group, Seat
from troth_client.calibration.rehearsal import Batch, Rehearsal, batches
from troth_client.compression import codec
from troth_client.compression.known_answer import choose_path
from troth_client.model.device import CPU, Device
from troth_client.participant.errors import MachineTooSmallError
from troth_client.runtime.memory import as_memory_error, first_line
from troth_client.train.errors import NonFiniteGradientError
from troth_client.train.memory import give_back
from troth_coordinator.rules.config import RunConfig

REPEAT_SECONDS: Final = 5.0
"""A gradient that was faster than this is computed again: the first one loads kernels."""
_TOKENS_SEED: Final = 13
_NUM_SEQUENCES: Final = 1 << 16
_SMALLER: Final = (
    "Join with a smaller --micro-batch, use a device with more memory, or join a run with a smaller"
    " model."
)
_LARGER: Final = "Use a machine with more memory, or join a run with a smaller model."
_NO_JUROR: Final = (
    "No --micro-batch changes what jurors compute. Use a machine with more memory, or"
    " --role trainer, which sits in no jury."
)
_STATUS: Final = Path("/proc/self/status")
_CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of this machine. Times are seconds, memory is bytes.

    `apply_reason` is why payloads are applied on the processor in integers, "" where they are not.
    `verdict` is the judge's on an honest payload of this device; `error` is the median distance of
    its tiles, None where there was nothing to measure. `peak_bytes` is with one gradient at a time;
    `work_bytes` of it are that gradient's. `device_*` are None on the processor.
    """

    device: str
    apply_reason: str
    payload_seconds: float
    judgement_seconds: float
    jury_seconds: float
    verdict: VerdictKind
    error: float | None
    peak_bytes: int
    work_bytes: int
    room_bytes: int
    device_peak_bytes: int | None = None
    device_room_bytes: int | None = None


class RandomTokens:
    """Sequences of tokens drawn from a seed: as good as text to time a gradient."""

    def __init__(self, config: RunConfig) -> None:
        self._vocabulary = config.model.vocab_size
        self._tokens = config.data.sequence_tokens + 1

    def __len__(self) -> int:
        """Return the number of sequences."""
        return _NUM_SEQUENCES

    def sequences(self, ids: Sequence[int]) -> NDArray[np.int64]:
        """Return the sequences as int64 [len(ids), T + 1]."""
        rows = [np.random.default_rng((_TOKENS_SEED, number)) for number in ids]
        return np.stack([row.integers(self._vocabulary, size=self._tokens) for row in rows])


def measure_machine(
    config: RunConfig,
    device: Device,
    clock: Clock = time.perf_counter,
    *,
    is_juror: bool = True,
) -> Measured:
    """Make one payload and judge it. Takes some gradients of the model, one of them on one thread.

    Unless this machine `is_juror`, that one takes one sequence at once, and so `jury_seconds`.
    Raises KnownAnswerError on a machine that cannot apply exactly, MachineTooSmallError where the
    memory does not suffice, NonFiniteGradientError.
    """
    path = choose_path(device.torch, k=config.demo.k)
    if not config.data.manifest_hash:
        config = config.with_manifest(bytes(32))
    try:
        with _in_memory(f"room for one gradient of the model on {device.torch}", _SMALLER):
            return _measured(config, device, clock, path.reason, is_juror=is_juror)
    finally:
        give_back()  # the participant comes next


def _measured(
    config: RunConfig,
    device: Device,
    clock: Clock,
    reason: str,
    *,
    is_juror: bool,
) -> Measured:
    is_cuda = device.torch.type == "cuda"
    if is_cuda:
        torch.cuda.reset_peak_memory_stats(device.torch)
    run, batch = Rehearsal(config, 1, 0), batches(config, RandomTokens(config), 0, 1)[0]
    held = resident_bytes()
    own, gradient_seconds = _gradient(config, run, batch, device, clock)
    began = clock()
    offer = run.offer(0, own)
    codec.check_decoded(codec.encode(offer.sent), offer.sent)
    made = clock()
    reference = _reference(config, run, batch, is_juror=is_juror)
    jury = clock()
    group = Group("this machine", is_honest=True)
    seat = Seat("reference", yardstick_of(Own(reference), run.layout.num_tiles))
    group.judge(run.opened(offer, 0, 0), offer.sent, [seat], run.rule)
    judged = clock()
    (verdict,) = group.verdicts
    peak = peak_bytes()
    return Measured(
        device=str(device.torch)
        if device.precision == "fp32"
        else f"{device.torch}, {device.precision}",
        apply_reason=reason,
        payload_seconds=gradient_seconds + made - began,
        judgement_seconds=gradient_seconds + judged - jury,
        jury_seconds=judged - made,
        verdict=verdict,
        error=group.medians[0] if group.medians else None,
        peak_bytes=peak,
        work_bytes=max(0, peak - held),
        room_bytes=room_bytes(),
        device_peak_bytes=torch.cuda.max_memory_allocated(device.torch) if is_cuda else None,
        device_room_bytes=torch.cuda.mem_get_info(device.torch)[1] if is_cuda else None,
    )


def _gradient(
    config: RunConfig, run: Rehearsal, batch: Batch, device: Device, clock: Clock
) -> tuple[Float32, float]:
    """Return D(g) and the seconds of the faster of two, or of one where that is slow."""
    times: list[float] = []
    while True:
        began = clock()
        found = recompute(config, run.weights, batch, device)
        times.append(clock() - began)
        if len(times) == 2 or times[0] > REPEAT_SECONDS:
            break
    if not np.isfinite(found).all():
        raise NonFiniteGradientError(
            "a finite gradient", "one that is not", "Check this machine's memory."
        )
    return found, min(times)


def _reference(config: RunConfig, run: Rehearsal, batch: Batch, *, is_juror: bool) -> Float32:
    """Return D(g) in reference mode; for one that only trains, one sequence at once.

    Raises MachineTooSmallError, which tells a juror the way out.
    """
    if not is_juror:
        needed = "room on the processor for one sequence, to compare with"
        with _in_memory(needed, _LARGER), num_threads(1):
            return recompute(config, run.weights, batch, replace(CPU, microbatch_sequences=1))
    size = config.train.microbatch_sequences
    needed = f"room for a juror's gradient on the processor, {size} sequences at once"
    with _in_memory(needed, _NO_JUROR):
        return recompute_reference(config, run.weights, batch)


def peak_bytes() -> int:
    """Return the most memory that this process has had.

    `getrusage` also counts what Linux had of the process that started this one.
    """
    found = _kibibytes(_STATUS, "VmHWM")
    if found is not None:
        return found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """Return the memory that this process has now; where the system does not say, its peak."""
    found = _kibibytes(_STATUS, "VmRSS")
    return peak_bytes() if found is None else found


def _kibibytes(path: Path, name: str) -> int | None:
    """Return the bytes that Linux shows under a name in one of its files; None elsewhere."""
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return 1024 * int(found[0]) if found else None


def room_bytes() -> int:
    """Return the memory that a process may have here: the machine's, or less in a container."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = _CGROUP_LIMIT.read_text(encoding="ascii").strip()
    except OSError:
        return machine
    return min(machine, int(limit)) if limit.isdecimal() else machine


def free_bytes() -> int:
    """Return the memory that processes may still have; where Linux does not say, all of it."""
    free = _kibibytes(Path("/proc/meminfo"), "MemAvailable")
    return room_bytes() if free is None else min(free, room_bytes())


@contextlib.contextmanager
def _in_memory(needed: str, advice: str) -> Iterator[None]:
    """Turn a lack of memory inside the block into MachineTooSmallError."""
    try:
        with as_memory_error():
            yield
    except MemoryError as error:
        raise MachineTooSmallError(needed, first_line(error), advice) from error
