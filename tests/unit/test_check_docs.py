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
    ("link", "found"),
    [
        ("[a](page.md#the-12-files-of-it)", []),
        ("[a](#here)", []),
        ("[a](https://elsewhere.org/x#y)", []),
        ("[a](page.md#the-files)", ["page.md#the-files names no heading"]),
        ("[a](#there)", ["#there names no heading"]),
        ("[a](gone.md#here)", ["gone.md leads nowhere"]),
    ],
)
def test_a_link_leads_to_a_page_and_to_a_heading_of_it(link, found, tmp_path):
    (tmp_path / "page.md").write_text("# Page\n\n## The 12 `files` of [it](x.py)\n")
    (tmp_path / "main.md").write_text(f"## Here\n\n{link}\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "main.md"], check=True)
    told = list(check_docs.broken_links(tmp_path))
    assert told == [f"main.md: link to {one}" for one in found]


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
