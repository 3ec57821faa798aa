"""The ranks of one participant: processes on one machine that compute its gradients together.

Owns: how they find each other, and that nobody else does; the three exchanges between them; a bound
on every wait of rank 0.
Never: computes, nor decides what follows when a rank is gone.
Next: `team.py` for both sides of a gradient.

Bytes travel through gloo on the loopback interface only: gloo asks nobody for a password. So the
ranks tell each other their addresses in a folder that only their user can open. The store of
torchrun listens on every interface, and anybody may write into it: it holds that name alone.
Tensors of other devices go over the processor's memory.
"""

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Protocol, Self

import torch
from torch import Tensor, distributed

from troth_client.runtime.memory import first_line
from troth_client.train.errors import RanksError, RanksLostError
from troth_client.train.place import Place

END: Final = 0
"""The order to end."""
LOOPBACK: Final = "127.0.0.1"
_ORDER_NUMBERS: Final = 3
_BY_TORCHRUN: Final = "Start all ranks by one torchrun, and look at the output of the others."
_BY_US: Final = "Look at the output of the others: each needs a device and memory of its own."
_PREFIX: Final = "troth-ranks-"
_FOLDER: Final = re.compile(_PREFIX + r"[a-z0-9_]{8}")
Order = tuple[int, int, int]
_WithRoot = distributed.BroadcastOptions | distributed.ReduceOptions


class _Names(Protocol):
    """The store of the launcher, which torch's stubs leave out."""

    def set(self, key: str, value: str) -> None: ...

    def get(self, key: str) -> bytes: ...


class Ranks:
    """Connections to all other ranks. Every call but `close` is made by all of them alike.

    A wait that fails or lasts too long raises RanksLostError; nothing can be exchanged afterwards.
    """

    def __init__(
        self,
        group: distributed.ProcessGroup,
        place: Place,
        patience: timedelta,
    ) -> None:
        self._group: distributed.ProcessGroup | None = group
        self._patience = patience
        self.rank = place.rank
        self.size = place.size

    @classmethod
    def connect(cls, place: Place, seconds: float, patience_seconds: float) -> Self:
        """Meet all other ranks within some seconds; later waits last `patience_seconds` at most.

        Raises RanksError.
        """
        patience = timedelta(seconds=seconds)
        parts: Any = distributed  # its type stubs leave these names out
        options = parts.ProcessGroupGloo._Options()
        options._timeout = patience
        try:
            options._devices = [parts.ProcessGroupGloo.create_device(hostname=LOOPBACK)]
            with _meeting(place, patience) as folder:
                inside = parts.FileStore(str(folder / "ranks"), place.size)
                inside.set_timeout(patience)
                group = parts.ProcessGroupGloo(inside, place.rank, place.size, options)
                group.barrier().wait()  # once all have met, nobody needs the folder
        except (RuntimeError, OSError) as error:
            raise RanksError(
                f"{place.size} ranks at {_where(place)} within {seconds:.0f} s",
                first_line(error),
                _BY_TORCHRUN if place.folder is None else _BY_US,
            ) from error
        return cls(group, place, timedelta(seconds=patience_seconds))

    def order(self, numbers: Order | None = None) -> Order:
        """Return the order that rank 0 gives; the others give none and wait for it."""
        sent = torch.tensor(numbers or (0,) * _ORDER_NUMBERS, dtype=torch.int64)
        self.share(sent)
        order, first, second = sent.tolist()
        return order, first, second

    def share(self, tensor: Tensor) -> None:
        """Give the tensor of rank 0 to all others, which receive it in place.

        Shape and dtype, one that gloo can send, are the same in all ranks; devices may differ.
        """
        here = self._with_root("broadcast", tensor, distributed.BroadcastOptions())
        if self.rank and here is not tensor:
            tensor.copy_(here)

    def add_up(self, tensor: Tensor) -> None:
        """Sum a tensor over all ranks into that of rank 0; those of others are undefined then.

        Shape and dtype, one that gloo can add, are the same in all ranks; devices may differ.
        """
        here = self._with_root("reduce", tensor, distributed.ReduceOptions())
        if not self.rank and here is not tensor:
            tensor.copy_(here)

    def told(self, word: int, seconds: float | None = None) -> list[int]:
        """Return the word of each rank, once all have said theirs; `seconds` bounds this wait."""
        words = torch.zeros(self.size, dtype=torch.int64)
        words[self.rank] = word
        options = distributed.AllreduceOptions()
        options.timeout = self._patience if seconds is None else timedelta(seconds=seconds)
        self._wait("allreduce", words, options)
        return [int(one) for one in words.tolist()]

    def close(self) -> None:
        """End the ranks: rank 0 says so, if they are there. No exchange may be under way."""
        if not self.rank and self._group is not None:
            with contextlib.suppress(RanksLostError):  # then they end by themselves
                self.order((END, 0, 0))
        self.cut()

    def cut(self) -> None:
        """Cut the connections: what other ranks wait for fails at once. Harmless when repeated."""
        if self._group is not None:
            self._group.abort()
            self._group = None  # its sockets close with it

    def _with_root(self, exchange: str, tensor: Tensor, options: _WithRoot) -> Tensor:
        """Exchange a tensor with rank 0; return the one on the processor that took part."""
        here = tensor.cpu()
        options.rootRank = options.rootTensor = 0
        options.timeout = self._patience
        self._wait(exchange, here, options)
        return here

    def _wait(self, exchange: str, tensor: Tensor, options: object) -> None:
        if self._group is None:
            raise self._lost("connections that were cut before")
        error: RuntimeError | None = None
        try:
            getattr(self._group, exchange)([tensor], options).wait()
        except RuntimeError as raised:
            error = raised.with_traceback(None)
        if error is not None:
            self.cut()
            raise self._lost(first_line(error))

    def _lost(self, found: str) -> RanksLostError:
        return RanksLostError(
            f"{self.size} ranks that answer",
            found,
            "A rank was ended, or computes for too long: look at the output of the others.",
        )


@contextlib.contextmanager
def _meeting(place: Place, patience: timedelta) -> Iterator[Path]:
    """Yield the folder in which the ranks meet; rank 0 makes it, names it in the store, removes it.

    Raises RanksError for a name that rank 0 cannot have written.
    """
    if place.folder is not None:  # then rank 0 has told the others, whom it started
        yield place.folder
        if place.rank == 0:  # now: whoever is killed later leaves nothing behind
            shutil.rmtree(place.folder, ignore_errors=True)
        return
    names = _names(place, patience)
    if place.rank == 0:
        # After a failed meeting another rank may still write its file, and leave it there.
        with private_folder() as made:
            names.set("folder", made.name)
            yield made
        return
    name = names.get("folder").decode("ascii", "replace")
    folder = Path(tempfile.gettempdir()) / name
    if not _FOLDER.fullmatch(name) or not _is_private(folder):
        raise RanksError(
            "the name of a folder that only this user can open, made by rank 0",
            ascii(name)[:80],
            "Start all ranks by one torchrun, and let no other machine reach its port.",
        )
    yield folder


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a folder to meet in, which only this user can open."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as made:
        yield Path(made)


def _names(place: Place, patience: timedelta) -> _Names:
    """Return the launcher's store, once it is there."""
    parts: Any = distributed  # its type stubs leave these names out
    is_master = place.rank == 0 and not place.launcher_hosts
    store = parts.TCPStore(
        place.host, place.port, place.size, is_master, patience, wait_for_workers=False
    )
    names: _Names = parts.PrefixStore(f"troth-{place.attempt}", store)
    return names


def _where(place: Place) -> str:
    return str(place.folder or f"{place.host}:{place.port}")


def _is_private(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    is_closed = not stat.S_IMODE(found.st_mode) & (stat.S_IRWXG | stat.S_IRWXO)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and is_closed
