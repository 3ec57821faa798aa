"""Commands whose help ends with a list, such as the cheats of `troth demo`.

Owns: making the list only when the help is printed, because making it may import slow modules.
Never: knows the entries. Next: `options.py`, which registers commands.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from typer.core import TyperCommand

Choices = Callable[[], Iterable[tuple[str, str]]]
"""Makes the list: names and what they mean."""


class Formatter(Protocol):
    """The writer of a help page."""

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
