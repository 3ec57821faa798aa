"""All cells of a profile: each method is trained once for its losses, then measured at each rate.

Owns: the order of the cells, and the means over ranks. Never: composes loss and time.
Next: `records.py` for what is made of it.
"""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from troth_client.model.shapes import num_parameters
from troth_simulation.profile.cell import Cell, play
from troth_simulation.profile.errors import WeightsDifferError
from troth_simulation.profile.rank import RankReport
from troth_simulation.profile.records import Curve, Plan, Row, Study, Workload

Report = Callable[[int, int, str], None]
"""Reports progress: cells done, cells in all, and the one that begins."""


def study(
    workloads: Sequence[Workload], plan: Plan, report: Report, tell: Callable[[str], None]
) -> Study:
    """Play all cells, one after the other; `tell` gets a line about each finished one.

    Errors as in `play`; WeightsDifferError.
    """
    cells = list(_cells(workloads, plan))
    rows: list[Row] = []
    curves: list[Curve] = []
    for number, cell in enumerate(cells):
        report(number, len(cells), _name(cell))
        found = play(cell)
        if cell.num_units:
            rows.append(_row(cell, found))
            row = rows[-1]
            tell(f"{_name(cell)}: {row.sent_bytes:,.0f} bytes, {row.seconds:.3f} s a step")
        else:
            curves.append(_curve(cell, found))
            tell(f"{_name(cell)}: {curves[-1].points[-1][1]:.3f} nats a token at the end")
    report(len(cells), len(cells), "")
    return Study(tuple(rows), tuple(curves))


def _cells(workloads: Sequence[Workload], plan: Plan) -> Iterator[Cell]:
    for workload in workloads:
        for method in plan.methods:
            unit = _unit_of(method, workload)
            yield Cell(workload, method, None, 0, unit)
            units = -(-plan.num_steps // unit)
            yield from (Cell(workload, method, mbit, units, unit) for mbit in plan.rates)


def _unit_of(method: str, workload: Workload) -> int:
    """Return the steps between two exchanges: only over whole ones is a mean of bytes fair."""
    return workload.inner_steps if method == "diloco" else 1


def _name(cell: Cell) -> str:
    where = f"{cell.mbit} Mbit/s" if cell.mbit else "no bound"
    what = where if cell.num_units else "losses"
    return f"{cell.workload.name}, {cell.method}, {what}"


def _row(cell: Cell, found: Sequence[RankReport]) -> Row:
    num_steps = cell.num_units * cell.unit_steps
    per_rank = len(found) * num_steps
    # A unit has ended when its last rank has.
    units = [max(times) for times in zip(*(one.seconds for one in found), strict=True)]
    return Row(
        model=cell.workload.name,
        num_parameters=num_parameters(cell.workload.config.model),
        method=cell.method,
        mbit=cell.mbit,
        num_steps=num_steps,
        seconds=median(units) / cell.unit_steps,
        slowest_seconds=max(units) / cell.unit_steps,
        sent_bytes=sum(one.sent_bytes for one in found) / per_rank,
        received_bytes=sum(one.received_bytes for one in found) / per_rank,
    )


def _curve(cell: Cell, found: Sequence[RankReport]) -> Curve:
    hashes = {one.weights for one in found}
    if len(hashes) > 1:
        raise WeightsDifferError(
            "the same weights on every rank after the last step",
            f"{len(hashes)} different ones",
            "Report it: this machine or the method is at fault.",
            cell.method,
        )
    return Curve(cell.workload.name, cell.method, found[0].losses)
