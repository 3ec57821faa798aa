"""Commands whose help ends with a list, such as the cheats of `troth demo`.

Owns: that the list is made only when that help is asked for; making it may import what is slow.
Never: knows what is listed. Next: `options.py`, which registers commands.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from typer.core import TyperCommand

Choices = Callable[[], Iterable[tuple[str, str]]]
"""Makes the list: names and what they mean."""


class Formatter(Protocol):
    """What a help page is written with."""

    def section(self, name: str) -> AbstractContextManager[None]:
        """Begin a section."""

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write names and meanings in two columns."""


def listing(choices: Choices) -> type[TyperCommand]:
    """Return a kind of command whose help ends with this list."""

    class ListingCommand(TyperCommand):
        """A command with a list at the end of its help."""

        def listed(self) -> list[tuple[str, str]]:
            """Return the list."""
            return list(choices())

        def format_epilog(self, ctx: object, formatter: Formatter) -> None:
            """Write it."""
            del ctx
            with formatter.section("Choices"):
                formatter.write_dl(self.listed())

    return ListingCommand
