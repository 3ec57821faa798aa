"""Settings of the process that every test relies on, and the split of the tests.

Owns: interrupts, threads, garbage collection, the home folder, the disk of temporary files, and the
split of the tests between the workers of pytest-xdist.
Never: fixtures of one kind of test; they lie in `support`. Next: the folders beside this file.
"""

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path

import pytest

gc.set_threshold(100_000, 50, 100)  # imports make few cycles and many objects

KINDS = ("waits", "computes", "unit")
MOST_LINES = 20
"""Lines of a failure that are shown while other tests still run."""

# Some shells start background commands with SIGINT ignored, and children inherit that. Tests that
# interrupt a process would then wait for an end that never comes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Assertions in support say what they compared, as those of the tests do.
pytest.register_assert_rewrite("support")

# A make that a test starts is nobody's sub-make: it says nothing of the folders it enters.
for variable in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(variable, None)

# Set before torch and numpy are imported, and inherited by every process that a test starts.
# Two workers with a thread for each core would only take the cores from each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = "1"

# Without a GPU, numpy does what Triton would compile for one. `make gpu` sets 0: real kernels.
os.environ.setdefault("TRITON_INTERPRET", "1")

# Participants sync what they keep, which takes a tenth of a run's time on a disk. Files in memory
# survive a killed process as well. Tests that fill a disk mount one of their own.
IN_MEMORY, LEAST_FREE_BYTES = Path("/dev/shm"), 4 * 2**30


def _is_fit(folder: Path) -> bool:
    """Tell whether tests may write there, and start the programs that some of them build."""
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        return False
    may_run = not os.statvfs(folder).f_flag & os.ST_NOEXEC
    return may_run and shutil.disk_usage(folder).free >= LEAST_FREE_BYTES


if _is_fit(IN_MEMORY):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


@pytest.fixture(scope="session", autouse=True)
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the user's own files, such as the config of Solana's command line, also from children.

    Caches of builds stay where they are.
    """
    home = Path.home()
    caches = {"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup", "XDG_CACHE_HOME": ".cache"}
    with pytest.MonkeyPatch.context() as patch:
        for variable, folder in caches.items():
            if variable not in os.environ and (home / folder).exists():
                patch.setenv(variable, str(home / folder))
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


def pytest_collection_finish() -> None:
    """Keep the modules of PyTorch and the tests out of every search for garbage.

    Garbage of the imports stays: each worker would look for it for a second or more.
    """
    gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Say at once why a test failed: the end of a long run's output may be cut off."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        told = [line for line in report.longreprtext.splitlines() if line.startswith("E ")]
        print(f"\n{report.nodeid}", *told[:MOST_LINES], sep="\n", file=sys.__stderr__)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long files first, and by turns those that wait for slots and those that compute.

    A file stays on one worker, so that its fixtures are made once.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting, computing, units = ([one for one in files if _kind(files[one][0]) == k] for k in KINDS)
    by_turns = chain.from_iterable(zip_longest(waiting, computing))
    items[:] = [item for file in (*by_turns, *units) if file for item in files[file]]


def _kind(item: pytest.Item) -> str:
    if item.get_closest_marker("processes") or item.get_closest_marker("validator"):
        return "waits"
    return "unit" if "unit" in item.path.parts else "computes"
