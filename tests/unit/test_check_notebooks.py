"""The check of notebooks sees a cell that fails, and one that prints something else."""

import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check_notebooks  # noqa: E402


def notebook(path, *sources):
    """Write a notebook whose cells have printed what they print."""
    cells = [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_what_was_written_is_what_is_checked(tmp_path):
    path = notebook(tmp_path / "a.ipynb", "x = 1", "print(x)\nx + 1")
    assert list(check_notebooks.check(path, is_writing=True)) == []
    assert list(check_notebooks.check(path)) == []
    path.write_text(path.read_text().replace("x = 1", "x = 3"))
    assert list(check_notebooks.check(path)) == ["a.ipynb, c1: prints '3\\n', in the file '1\\n'"]


def test_a_cell_that_fails_is_named(tmp_path):
    path = notebook(tmp_path / "a.ipynb", "1 / 0")
    assert list(check_notebooks.check(path)) == [
        "a.ipynb: a cell failed: ZeroDivisionError: division by zero"
    ]


def test_a_large_notebook_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(check_notebooks, "MAX_BYTES", 100)
    path = notebook(tmp_path / "a.ipynb", "")
    (problem,) = check_notebooks.check(path)
    assert problem.endswith("at most 100")


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.name)
def test_committed_notebooks_hold_their_outputs_and_no_times(path):
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert any(cell.outputs for cell in cells)
    assert [cell.id for cell in cells if "execution" in cell.metadata] == []
