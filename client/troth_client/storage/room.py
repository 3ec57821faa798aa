"""Room: what gives way on a full disk, so that what the stake hangs on can still be written.

Owns: the order, and trying again. Never: drops what cannot be fetched or made again. Weights that a
judge needs go last of all.
Next: `store.py`, whose copies go first; `participant/assembly.py` and `troth join` add the rest.
"""

from collections.abc import Callable

from troth_client.runtime.files import DiskFullError


class Room:
    """The things that can be spared, the least missed first; `report` gets each full disk."""

    def __init__(self, report: Callable[[DiskFullError], None] = lambda _error: None) -> None:
        self._report = report
        self._spares: list[Callable[[], bool | None]] = []

    def add(self, drop: Callable[[], bool | None]) -> None:
        """Let this be dropped too, after what was added before. It may be called repeatedly.

        It returns True where it dropped a part, and has more for the next call.
        """
        self._spares.append(drop)

    def write(self, save: Callable[[], None]) -> None:
        """Save what must be on the disk, after dropping as much as that needs.

        The first full disk of a save is reported. Raises DiskFullError when everything was dropped,
        and that is not enough.
        """
        failure = _failure_of(save)
        if failure is not None:
            self._report(failure)
        for drop in self._spares:
            has_more: bool | None = True
            while failure is not None and has_more:
                has_more = drop()
                failure = _failure_of(save)
        if failure is not None:
            raise failure


def _failure_of(save: Callable[[], None]) -> DiskFullError | None:
    try:
        save()
    except DiskFullError as error:
        return error
    return None
