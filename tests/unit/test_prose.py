"""The prose rules find what they name, and let standard English pass."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import check_prose  # noqa: E402
import check_words  # noqa: E402
import prose_sources  # noqa: E402
import prose_text  # noqa: E402

LONG = " ".join(["word"] * 33) + "."


def texts(page):
    return [sentence.text for sentence in prose_text.markdown_sentences(page)]


def problems(text):
    (sentence,) = prose_text.split(text, 1)
    return list(check_prose.sentence_problems(sentence, check_words.banned()))


def test_a_page_is_cut_into_its_sentences():
    page = (
        "# What is it\n\nOne. Two\nlines.\n\n- an item\n- [a link](x.md)\n\n```\nWho knows.\n```\n"
    )
    assert texts(page) == ["One.", "Two lines.", "an item", "a link"]


def test_each_field_of_a_list_is_a_sentence():
    found = prose_text.split("kind: the outer name. run, slot: where and when. It ends here.", 1)
    assert [one.num_words for one in found] == [4, 5, 3]


def test_cells_of_a_table_are_texts_of_their_own_and_its_head_is_none():
    page = "| who | what |\n|---|---|\n| a thief | steals, tests/a.py::test_b |\n"
    assert texts(page) == ["a thief", "steals,"]


def test_code_counts_as_one_word():
    (sentence,) = prose_text.split("Run `troth join RUN --data data` now.", 1)
    assert sentence.num_words == 3


def test_an_abbreviation_ends_no_sentence():
    assert [s.text for s in prose_text.split("Things, e.g. Rust. More.", 1)] == [
        "Things, e.g. Rust.",
        "More.",
    ]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (LONG, "33 words"),
        ("Who stops is told what it owes.", "without a subject"),
        ("Whoever leaves gets its stake.", "without a subject"),
        ("It waits; who lacks it asks.", "without a subject"),
        ("A second committee votes.", "write jury"),
        ("Second-committee members vote.", "write jury"),
        ("The miners send payloads.", "write trainer"),
        ("A validator recomputes.", "write witness"),
    ],
)
def test_a_sentence_that_breaks_a_rule_is_found(text, part):
    (found,) = problems(text)
    assert part in found


@pytest.mark.parametrize(
    "text",
    [
        "Who may join?",
        "Nobody says who it was.",
        "Solana's validators run the chain.",
        "An RPC node answers.",
        "The supervisor runs three sibling tasks.",
        LONG.replace("word word.", "word."),
    ],
)
def test_a_sentence_that_keeps_the_rules_passes(text):
    assert problems(text) == []


def test_docstrings_comments_and_help_are_read():
    source = '"""A module."""\nX = 1\n"""A constant."""\n# A comment\n# of two lines.\n'
    source += 'f(help="A help.")\n'
    found = {sentence.text for sentence in prose_sources.python_sentences(source)}
    assert found == {"A module.", "A constant.", "A comment of two lines.", "A help."}


def test_rust_and_settings_are_read():
    rust = "//! A module.\n\n/// An item,\n/// told.\nfn f() {} // aside\n"
    assert [s.text for s in prose_sources.rust_sentences(rust)] == ["A module.", "An item, told."]
    settings = "# A comment.\nkey = 1\n"
    assert [s.text for s in prose_sources.toml_sentences(settings)] == ["A comment."]


def test_a_folder_may_not_get_worse(monkeypatch):
    monkeypatch.setattr(check_prose, "counted", lambda: {"a/b": 3, "c": 1})
    monkeypatch.setattr(check_prose, "baseline", lambda: {"a/b": 2, "c": 1})
    (found,) = check_prose.baseline_problems()
    assert found.startswith("a/b: 3 hits")


@pytest.mark.parametrize(
    ("identifier", "word", "is_held"),
    [
        ("OpeningsDesk", "desk", True),
        ("desktop", "desk", False),
        ("second_committee_votes", "second committee", True),
        ("committee_second", "second committee", False),
        ("job_names", "job", True),
    ],
)
def test_words_are_found_in_identifiers(identifier, word, is_held):
    assert check_words.holds(identifier, word) is is_held


def test_names_that_a_file_defines_are_read():
    python = "class A:\n    def b(self, c):\n        self.d = e = f\n"
    names = {name for _, name in check_words.python_names(python)}
    assert names == {"A", "b", "self", "c", "d", "e"}
    rust = "pub struct A {\n    pub b: u8, // c: d\n}\nfn e() { let f = 1; }\n"
    assert {name for _, name in check_words.rust_names(rust)} == {"A", "b", "e", "f"}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from troth_audit.replay.findings import Rule as Named", ["Rule as Named"]),
        ("from support.runs import RUN as RUN_BYTES, member as one", []),
        ("from solders.account import Account as ChainAccount", []),
        ("from troth_audit.replay.findings import Rule", []),
    ],
)
def test_our_classes_keep_their_names_where_they_are_imported(line, found):
    assert [words for _, words in check_words.aliases_in(line)] == found


def test_every_word_is_listed_once():
    words = [entry.word for entry in check_words.banned()]
    assert len(set(words)) == len(words)
    listed = check_words.entries()
    assert {str(entry["word"]) for entry in listed["allowed"]} <= set(words)
