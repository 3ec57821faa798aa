"""Mistakes at the command line: each is made for real, and the page shows what troth says."""

from pathlib import Path

import pytest
from support.mistake_list import MISTAKES
from support.mistakes import PAGE, Answer, Mistake, own_words, page, workplace

pytestmark = pytest.mark.processes
REPOSITORY = Path(__file__).parents[2]
LEAST = 60
PARTS = ("expected", "found", "next")


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[Mistake, Answer]:
    with workplace(tmp_path_factory.mktemp("mistakes")) as place:
        return {mistake: place.make(mistake) for mistake in MISTAKES}


def ident(mistake: Mistake) -> str:
    return f"{mistake.subject}: {mistake.title}"


@pytest.mark.parametrize("mistake", MISTAKES, ids=ident)
def test_a_mistake_is_answered_with_what_to_do_next(answers, mistake):
    answer = answers[mistake]
    lines = answer.text.splitlines()
    assert answer.code == mistake.code, answer.raw
    assert answer.out == ""
    assert lines[0].startswith("error: "), answer.raw
    labels = [line.split()[0] for line in lines[1:] if line.startswith("  ") and line[2] != " "]
    assert labels == list(PARTS), answer.raw
    assert "Traceback" not in answer.raw
    assert "please report" not in answer.raw
    for path in (REPOSITORY, Path.home(), "/dev/shm"):
        assert str(path) not in answer.text


def test_the_page_shows_every_mistake_and_its_answer(answers):
    assert len(MISTAKES) >= LEAST
    assert len({ident(mistake) for mistake in MISTAKES}) == len(MISTAKES)
    fresh = page(list(answers.items()))
    assert own_words(PAGE.read_text()) == own_words(fresh), (
        "docs/reference/mistakes.md is stale: run python scripts/gen/mistakes.py"
    )
