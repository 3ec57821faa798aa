"""`Screen`: a display that redraws itself on a terminal, and lines anywhere else.

Owns: which of the two it is, and that a line is printed once.
Never: decides what is shown. Lines that others print meanwhile appear above the display.
Next: `run_display.py` and `troth_client/telemetry/display.py`, which draw.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console, RenderableType
from rich.live import Live

from troth_client.telemetry.printable import one_line

LEAST_COLUMNS: Final = 80
"""A narrower terminal gets lines."""
REFRESHES_PER_SECOND: Final = 4


class Screen:
    """A display on a console while its block runs. `is_wanted`: the user did not ask for lines.

    `picture` draws what is shown, a few times a second, in another thread. Without it, `draw`
    says what is shown.
    """

    def __init__(
        self,
        console: Console,
        *,
        is_wanted: bool = True,
        picture: Callable[[], RenderableType] | None = None,
    ) -> None:
        is_able = console.is_terminal and not console.is_dumb_terminal
        self._console = console
        self._live: Live | None = None
        self._printed: set[str] = set()
        if is_wanted and is_able and console.width >= LEAST_COLUMNS:
            self._live = Live(
                console=console,
                refresh_per_second=REFRESHES_PER_SECOND,
                get_renderable=picture,
            )

    @property
    def is_live(self) -> bool:
        """Whether it draws; else it takes lines."""
        return self._live is not None

    @property
    def num_rows(self) -> int:
        """How many rows there are to draw in."""
        return self._console.height

    def draw(self, picture: RenderableType) -> None:
        """Show a picture in place of the last one."""
        if self._live is not None:
            self._live.update(picture)

    def line(self, text: str) -> None:
        """Print a line, above the picture if there is one."""
        self._console.print(one_line(text), highlight=False, markup=False, soft_wrap=True)

    def line_once(self, text: str, key: str = "") -> None:
        """Print a line unless it, or one with this key, was printed before."""
        keys = {key, text} - {""}
        if self._printed.isdisjoint(keys):
            self.line(text)
        self._printed |= keys

    def __enter__(self) -> Self:
        """Take the place on the terminal."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last picture where it is."""
        if self._live is not None:
            self._live.stop()
