"""Run the notebooks and compare what they print with what is committed.

python scripts/check_notebooks.py           exit 1 if a cell fails, or prints something else
python scripts/check_notebooks.py --write   keep what the cells print and draw

Owns: the comparison of printed text. Pictures are not compared: fonts and numbers of another
machine may move a pixel. Never: changes a cell.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
SECONDS = 300
MAX_BYTES = 1_000_000


def main() -> int:
    """Print every problem; exit status 1 if there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    is_writing = parser.parse_args().write
    paths = sorted(FOLDER.glob("*.ipynb"))
    problems = [problem for path in paths for problem in check(path, is_writing=is_writing)]
    print("\n".join(problems) or f"notebooks: {len(paths)} run, and print what is committed")
    return 1 if problems else 0


def check(path: Path, *, is_writing: bool = False) -> Iterator[str]:
    """Run one notebook and yield how its texts differ from the file; write it if asked to."""
    committed = nbformat.read(path, as_version=4)
    played = nbformat.from_dict(committed)
    played.cells = [nbformat.from_dict(cell) for cell in committed.cells]
    try:
        _play(played, path.parent)
    except CellExecutionError as error:
        yield f"{path.name}: a cell failed: {error.ename}: {error.evalue}"
        return
    if is_writing:
        nbformat.write(without_times(played), path)
    else:
        yield from differences(path.name, committed.cells, played.cells)
    if path.stat().st_size > MAX_BYTES:
        yield f"{path.name}: {path.stat().st_size:,} bytes, at most {MAX_BYTES:,}"


def _play(notebook: NotebookNode, folder: Path) -> None:
    """Run all cells in a kernel on loopback, in the notebook's own folder."""
    where = {"metadata": {"path": str(folder)}}
    quiet = ["--log-level=ERROR"]
    NotebookClient(notebook, timeout=SECONDS, resources=where, extra_arguments=quiet).execute()


def differences(
    name: str, committed: list[NotebookNode], played: list[NotebookNode]
) -> Iterator[str]:
    """Yield the cells that print something else than in the file."""
    for old, new in zip(committed, played, strict=True):
        if printed(old) != printed(new):
            yield f"{name}, {old.id}: prints {printed(new)!r}, in the file {printed(old)!r}"


def printed(cell: NotebookNode) -> str:
    """Return what a cell prints; its pictures are left out."""
    return "".join(one.text for one in cell.get("outputs", ()) if one.output_type == "stream")


def without_times(notebook: NotebookNode) -> NotebookNode:
    """Leave out when each cell ran, and what else changes from run to run."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


if __name__ == "__main__":
    sys.exit(main())
