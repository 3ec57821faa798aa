"""The commands of README and the guides exist: `troth` lines with their flags, `make` targets."""

import contextlib
import io
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from troth_cli.main import run

PLAIN = {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text()
GUIDES = [path.read_text() for path in sorted((REPOSITORY / "docs/guide").glob("*.md"))]


def blocks(*pages):
    """The fenced blocks of pages, as lists of lines."""
    found = [block for page in pages for block in re.findall(r"```\n(.*?)```", page, re.S)]
    return [block.strip().splitlines() for block in found]


def commands(program):
    """Every command line of a program in README's blocks, without its comment."""
    lines = [line.split("  #")[0].strip() for block in blocks(README) for line in block]
    return [line for line in lines if line.startswith(program + " ")]


def by_hand():
    """Words up to the first option or argument, options named in the line or in its comment.

    A command that stands in several places is asked for once, with all its options.
    """
    found = {}
    for block in blocks(README, *GUIDES):
        for line in block:
            if line.startswith("troth "):
                words = re.match(r"troth((?: [a-z][a-z-]*(?![.\w]))+)", line).group(1).split()
                options = found.setdefault(tuple(words), [])
                options += re.findall(r"--[a-z-]+", line)
    return [(list(words), options) for words, options in found.items()]


@cache
def help_of(*words):
    """The help of the longest command that these words begin with, and its words."""
    for length in range(len(words), 0, -1):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()):
            code = run([*words[:length], "--help"])
        if code == 0:
            return words[:length], shown.getvalue()
    raise AssertionError(f"no such command: troth {' '.join(words)}")


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch):
    """Help as a script sees it: no colours, lines long enough for every option."""
    for name, value in PLAIN.items():
        monkeypatch.setenv(name, value)


def test_readme_shows_both_ways():
    assert len(GUIDES) == 13
    assert commands("make") == ["make demo", "make test", "make audit"]
    assert len(by_hand()) >= 6


@pytest.mark.parametrize(("words", "options"), by_hand(), ids=lambda x: " ".join(x) or "none")
def test_a_command_by_hand_exists_with_its_options(words, options):
    found, text = help_of(*words)
    assert list(found) == words
    known = set(re.findall(r"--[a-z][a-z-]*", text))
    assert set(options) <= known, f"troth {' '.join(found)} has no {set(options) - known}"


@pytest.mark.parametrize("target", [line.split()[1] for line in commands("make")])
def test_a_make_target_exists_and_is_in_the_list(target):
    listed = subprocess.run(
        ["make", "help"], cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=60
    )
    assert re.search(rf"^  make {target} ", listed.stdout, re.M)
    dry = subprocess.run(
        ["make", "--dry-run", target],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert dry.returncode == 0, dry.stderr


@pytest.mark.parametrize("word", ["--help", "--json", "--config"])
def test_every_command_has_what_readme_promises(word):
    for words, _ in by_hand():
        assert word in help_of(*words)[1], words
