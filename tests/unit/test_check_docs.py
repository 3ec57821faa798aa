"""The check of file names in docstrings finds files that do not exist, and only these."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check_docs  # noqa: E402


def missing(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The file names that a module with this docstring names in vain."""
    (tmp_path / "part").mkdir()
    (tmp_path / "part/there.py").write_text("")
    (tmp_path / "main.py").write_text(f'"""{text}"""\n')
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(check_docs.check_words, "ROOT", tmp_path)
    return [
        problem.split(" names ")[1].split(",")[0] for problem in check_docs.missing_files(tmp_path)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Next: there.py.",
        "Next: `part/there.py`, which does.",
        "Next: `../part/there.py`.",
        "Any test_*.py or <name>.py.",
        "No file.",
    ],
)
def test_a_file_that_exists_may_be_named(text, tmp_path, monkeypatch):
    assert missing(text, tmp_path, monkeypatch) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Next: gone.py.", "gone.py"),
        ("Next: `part/gone.py`.", "part/gone.py"),
        ("Next: `other/there.py`, then there.py.", "other/there.py"),
    ],
)
def test_a_file_that_does_not_exist_is_found(text, found, tmp_path, monkeypatch):
    assert missing(text, tmp_path, monkeypatch) == [found]
