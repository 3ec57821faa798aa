"""Findings of a profile without a measurement, and what a profile of a process has left behind.

Owns: the makers and the looks. Never: a measurement; `troth profile` makes those.
"""

import subprocess
from pathlib import Path

from troth_simulation.profile.records import Curve, Row, Study

CURVES = {
    "ddp": ((0, 5.5), (10, 4.0), (20, 3.0)),
    "demo": ((0, 5.5), (10, 4.5), (20, 3.5)),
}
SECONDS = {("ddp", 10): 4.0, ("demo", 10): 0.2, ("ddp", None): 0.1, ("demo", None): 0.1}
BYTES = {"ddp": 4_000_000.0, "demo": 30_000.0}


def row(method: str, mbit: int | None) -> Row:
    """A measurement of a model of 656,256 parameters."""
    seconds = SECONDS[method, mbit]
    sent = BYTES[method]
    return Row("demo", 656_256, method, mbit, 5, seconds, 1.5 * seconds, sent, sent + 100)


def study() -> Study:
    """Two methods, one rate and none."""
    rows = tuple(row(method, mbit) for method, mbit in SECONDS)
    curves = tuple(Curve("demo", method, points) for method, points in CURVES.items())
    return Study(rows, curves)


def left_of(pid: int) -> list[str]:
    """The namespaces and links of a process, by name."""
    prefix = f"tf{pid}"
    namespaces = Path("/run/netns")
    found = [one.name for one in namespaces.iterdir()] if namespaces.is_dir() else []
    links = [one.name for one in Path("/sys/class/net").iterdir()]
    return sorted(name for name in (*found, *links) if name.startswith(prefix))


def pids_in(namespace: str) -> list[int]:
    """The processes that live in a namespace; none where there is no such namespace."""
    command = ["ip", "netns", "pids", namespace]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [int(line) for line in done.stdout.split()]
