"""Room: what gives way on a full disk, so that what the stake hangs on can still be written.

Owns: the order, and trying again. Never: drops anything that the chain may ask for, or that cannot
be fetched or made again.
Next: `store.py`, whose copies go first; `participant/assembly.py` and `troth join` add the rest.
"""

from collections.abc import Callable

from troth_client.runtime.files import DiskFullError


class Room:
    """The things that can be spared, the least missed first; `report` gets each full disk."""

    def __init__(self, report: Callable[[DiskFullError], None] = lambda _error: None) -> None:
        self._report = report
        self._spares: list[Callable[[], None]] = []

    def add(self, drop: Callable[[], None]) -> None:
        """Let this be dropped too, after what was added before. It may be called repeatedly."""
        self._spares.append(drop)

    def write(self, save: Callable[[], None]) -> None:
        """Save what must be on the disk, after dropping as much as that needs.

        Raises DiskFullError when everything was dropped, and that is not enough.
        """
        for drop in self._spares:
            try:
                save()
            except DiskFullError as error:
                self._report(error)
                drop()
            else:
                return
        save()
