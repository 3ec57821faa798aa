"""The numbers of a picture of a run, as frozen records.

Owns: the records that a collector makes and that `draw.py` and `page.py` show.
Never: reads a log or a chain, or draws.
Next: `collect.py` for the collector of event logs; `draw.py`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RoundRow:
    """A closed round. Losses in nats a token; None is what nobody measured.

    `num_committed` counts the participants that are known to have committed. `num_bytes` is the
    length of all included payloads together.
    """

    round: int
    loss: float | None
    validation: float | None
    num_committed: int
    num_included: int
    num_bytes: int | None
    is_void: bool


@dataclass(frozen=True, slots=True)
class StakeLine:
    """The stake of one participant, in lamports, by round; a stake holds until the next entry."""

    name: str
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Slash:
    """Lamports that a conviction for the work of a round took."""

    round: int
    name: str
    taken: int


@dataclass(frozen=True, slots=True)
class PlotData:
    """A run in numbers. `rounds`, at least one, ascend; `names`: whose logs were read."""

    run: str
    names: tuple[str, ...]
    rounds: tuple[RoundRow, ...]
    stakes: tuple[StakeLine, ...]
    slashes: tuple[Slash, ...]

    @property
    def losses(self) -> list[tuple[int, float]]:
        """The rounds with a training loss, and that loss."""
        return [(row.round, row.loss) for row in self.rounds if row.loss is not None]

    @property
    def validations(self) -> list[tuple[int, float]]:
        """The rounds with a validation loss, and that loss."""
        return [(row.round, row.validation) for row in self.rounds if row.validation is not None]

    @property
    def taken(self) -> int:
        """All lamports that convictions took."""
        return sum(one.taken for one in self.slashes)
