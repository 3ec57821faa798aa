"""Several processes of one participant: what its launcher says, and the life of a helping rank.

Owns: reading the variables of torchrun and ours, which device a rank takes, signals of a helping
rank.
Never: imports torch before it is needed, and nothing of the participant itself in a helping rank.
Next: `helpers.py`, which starts ranks without torchrun; `troth_client/train/team.py` for what the
ranks exchange.
"""

import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troth_cli.errors import InputError
from troth_cli.view.output import Output
from troth_client.train.place import Place

_NEEDED: Final = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT")
_HINT: Final = "Start it with: torchrun --nproc-per-node N -m troth_cli join RUN, or by itself."
ARRIVED: Final = "arrived-"
"""A rank makes this file in the folder, with its number, when it is ready to meet."""


@dataclass(frozen=True, slots=True)
class Training:
    """How a helping rank computes gradients, under the names of `ParticipantSettings`."""

    compiles: bool
    microbatch_sequences: int | None
    precision: str


def place_of(environment: Mapping[str, str], asked: int = 1) -> Place | None:
    """Return the place of this process; None where nobody else computes with it.

    torchrun gives it. One that nobody gave a place is rank 0 of as many ranks as were `asked` for.
    Raises InputError where variables are missing or wrong, or name other machines.
    """
    found = _launched(environment)
    if found is None:
        return Place(0, asked, 0) if asked > 1 else None
    if asked > 1:
        raise InputError(
            "--ranks or torchrun", f"--ranks {asked} under torchrun", "Leave one out.", "--ranks"
        )
    return found


def _launched(environment: Mapping[str, str]) -> Place | None:
    if "RANK" not in environment or environment.get("WORLD_SIZE") in (None, "1"):
        return None
    number = {name: _number(environment, name) for name in _NEEDED}
    rank, size = number["RANK"], number["WORLD_SIZE"]
    if not rank < size:
        raise InputError(f"RANK below WORLD_SIZE {size}", str(rank), _HINT, "RANK")
    if number["LOCAL_WORLD_SIZE"] != size:
        raise InputError(
            "all ranks on this machine",
            f"{number['LOCAL_WORLD_SIZE']} of {size}",
            "Let each machine join with a stake of its own: nothing between ranks is encrypted.",
            "LOCAL_WORLD_SIZE",
        )
    return Place(
        rank,
        size,
        number["LOCAL_RANK"],
        environment.get("MASTER_ADDR", "127.0.0.1"),
        number["MASTER_PORT"],
        environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        environment.get("TORCHELASTIC_RESTART_COUNT", "0"),
    )


def _number(environment: Mapping[str, str], name: str) -> int:
    value = environment.get(name, "")
    if not value.isdecimal():
        raise InputError(f"a number in {name}", repr(value), _HINT, name)
    return int(value)


def refuse_ranks(environment: Mapping[str, str], asked: int = 1) -> None:
    """Raise InputError for several ranks: whoever computes no payloads is one process.

    Each rank would take part by itself, all with one key.
    """
    place = place_of(environment, asked)
    if place is not None:
        raise InputError(
            "one process, which trains nothing",
            f"rank {place.rank} of {place.size}",
            "Start it without torchrun or --ranks: a verdict is computed on one device.",
            "RANK",
        )


def num_cores() -> int | None:
    """Return how many cores this process may use; None where the system does not say."""
    if hasattr(os, "sched_getaffinity"):  # less than the machine's in a container
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def threads_of(place: Place | None, asked: int | None, cores: int | None) -> int | None:
    """Return how many threads to compute with: as many as asked for; None for PyTorch's own number.

    torchrun leaves one thread to each rank. Without an answer of the user a rank takes its share of
    the cores, at least one.
    """
    if asked is not None or place is None:
        return asked
    return max(1, (cores or 1) // place.size)


def device_of(place: Place, asked: str, *, has_cuda: bool) -> str:
    """Return the name of a rank's device: the GPU of its number unless another is named."""
    return f"cuda:{place.local}" if has_cuda and asked in ("auto", "cuda") else asked


def help_rank_zero(
    place: Place, training: Training, device: str, num_threads: int | None, output: Output
) -> None:
    """Compute for rank 0 until it ends. Raises RanksError, RanksLostError, DeviceError."""
    if place.folder is not None:
        _end_with_rank_zero(place.folder)
    with output.loading() if place.folder is None else contextlib.nullcontext():
        import torch

        from troth_cli.view.events import EventLines
        from troth_client.model.device import choose_device
        from troth_client.participant.learning import pass_of
        from troth_client.train.learner import OneDevice
        from troth_client.train.team import help_leader, meet
    if num_threads is not None:
        torch.set_num_threads(num_threads)
    name = device_of(place, device, has_cuda=torch.cuda.is_available())
    chosen = choose_device(name, training.microbatch_sequences, training.precision)
    output.note(f"rank {place.rank} of {place.size} computes for rank 0 on {chosen.torch}")
    one_pass = pass_of(EventLines(output), compiles=training.compiles)
    if place.folder is not None:
        (place.folder / f"{ARRIVED}{place.rank}").touch()
    with contextlib.closing(meet(place)) as ranks:
        # torchrun passes both on to every rank, and systemd sends SIGTERM to every process. Rank 0
        # ends its round first and says when to end; before they met, nobody would say so.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        help_leader(ranks, OneDevice(one_pass), chosen)


def _end_with_rank_zero(folder: Path) -> None:
    """End this process as soon as rank 0 has ended, however it did: the pipe from it closes then.

    A rank that computes, or waits for a meeting that never comes, would notice late or never. A
    rank 0 that was killed before all have met has left the folder.
    """

    def wait() -> None:
        os.read(sys.stdin.fileno(), 1)
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
