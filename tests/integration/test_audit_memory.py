"""An auditor holds no more after more rounds, but for the lines of its picture."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.played_runs import PlayedRun
from support.recordings import PLAN
from support.runs import settings_of

from troth_audit.replay.report import Conclusion
from troth_audit.replay.series import Lines
from troth_cli.workflows.audit import auditor_of
from troth_cli.workflows.audit_inputs import Asked, gather

EARLY = 30
"""By then every ring of the run is full, and the longest window over."""
SHORT = {"ring": 8, "rounds_per_epoch": 10, "residual_rounds": 10}
ROUNDS = 3 * EARLY + 10


def held(thing: object, name: str = "auditor", seen: set[int] | None = None) -> Counter[str]:
    """The lengths of all containers of an auditor, by where they are."""
    seen = set() if seen is None else seen
    found: Counter[str] = Counter()
    if id(thing) in seen or isinstance(thing, Lines | str | bytes):
        return found
    seen.add(id(thing))
    parts: Iterator[tuple[str, object]] = iter(())
    if isinstance(thing, Mapping):
        parts = ((name, one) for one in thing.values())
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        parts = ((name, one) for one in thing)
    elif type(thing).__module__.startswith("troth_audit"):
        for one in names(thing):
            found += held(getattr(thing, one, None), f"{name}.{one}", seen)
        return found
    else:
        return found
    found[name] += len(thing)  # type: ignore[arg-type]
    for place, one in parts:
        found += held(one, place, seen)
    return found


def names(thing: object) -> Iterator[str]:
    """The attributes of an object, in slots or not."""
    yield from getattr(thing, "__dict__", ())
    for kind in type(thing).__mro__:
        yield from getattr(kind, "__slots__", ())


@pytest.fixture(scope="module")
def archive(data, tmp_path_factory) -> Path:
    """A long run, whose payloads nobody computed."""
    folder = tmp_path_factory.mktemp("played")
    run = PlayedRun(settings_of(data[1], ROUNDS).config, data[1], ROUNDS, folder, **SHORT)
    assert 2 * max(run.params.ring, run.params.residual_rounds) < EARLY
    run.play_all()
    asyncio.run(run.archive())
    return folder


def sizes_at(folder: Path, *rounds: int) -> list[Counter[str]]:
    """Return what an auditor holds at these rounds."""
    sizes: list[Counter[str]] = []
    inputs = gather(Asked(None, None, [], [str(folder)], None, folder))
    with ThreadPoolExecutor(1) as threads:
        auditor, _ = auditor_of(inputs, PLAN, threads)
        assert auditor.replay is not None

        def measure(round_: int) -> None:
            if round_ in rounds:
                sizes.append(held(auditor))

        auditor.replay.on_round = measure
        assert auditor.audit(inputs.ledger.entries()).conclusion is Conclusion.GOOD
    return sizes


@pytest.mark.long(reason="a hundred rounds are played to compare sizes")
def test_an_auditor_holds_as_much_after_three_times_as_many_rounds(archive):
    # Both rounds stand at the same place between two checkpoints, and between two epochs.
    early, late = sizes_at(archive, EARLY, 3 * EARLY)
    assert sum(early.values()) > 100
    assert {name: num for name, num in late.items() if num > early[name]} == {}
