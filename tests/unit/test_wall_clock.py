"""No step of the protocol reads the wall clock: a machine whose clock is wrong takes part."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import troth_attestation
import troth_client
import troth_coordinator

STAMPS = {f"telemetry/{name}.py" for name in ("event_log", "metrics", "tensorboard")}
"""Records say when something happened; nothing is decided by it."""
READS = {"time", "time_ns", "localtime", "gmtime", "now", "utcnow", "today", "fromtimestamp"}


def wall_clocks(source: str) -> Iterator[str]:
    """Yield the reads of the time of day in a source file."""
    for found in ast.walk(ast.parse(source)):
        if isinstance(found, ast.ImportFrom) and found.module in {"time", "datetime"}:
            yield from (one.name for one in found.names if one.name in READS | {"datetime"})
        if isinstance(found, ast.Attribute) and isinstance(found.value, ast.Name):
            is_clock = found.value.id in {"time", "datetime", "date"}
            if is_clock and found.attr in READS:
                yield f"{found.value.id}.{found.attr}"


@pytest.mark.parametrize("package", [troth_attestation, troth_client, troth_coordinator])
def test_only_records_read_the_time_of_day(package):
    folder = Path(str(package.__file__)).parent
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    reading = {name for name, path in paths.items() if list(wall_clocks(path.read_text()))}
    assert reading <= STAMPS


def test_a_read_is_noticed():
    assert list(wall_clocks("import time\nnow = time.time()")) == ["time.time"]
    assert list(wall_clocks("from datetime import datetime")) == ["datetime"]
    assert list(wall_clocks("import time\nnow = time.monotonic()")) == []
