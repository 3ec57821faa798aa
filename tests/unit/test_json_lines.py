"""Files of finished runs: half a line of a killed process costs that run alone."""

import pytest
from json_lines import append_line, read_lines
from whole_runs import Journal

from troth_coordinator.config_files import load_config

HALF = b'{"name": "2", "world": "'


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.jsonl"


def test_a_missing_file_has_no_lines(path):
    assert list(read_lines(path)) == []


def test_half_a_line_is_skipped_and_stays_as_another_process_may_be_writing_it(path):
    append_line(path, {"run": 1})
    path.write_bytes(path.read_bytes() + HALF)
    before = path.read_bytes()
    assert list(read_lines(path)) == [{"run": 1}]
    assert path.read_bytes() == before


@pytest.mark.parametrize("cut", [bytes(8), b'\0\0\0{"run": 2}', '{"run": "\xe9'.encode()[:-1]])
def test_a_line_of_zeros_or_with_half_a_letter_is_skipped(path, cut):
    append_line(path, {"run": 1})
    path.write_bytes(path.read_bytes() + cut + b"\n")
    append_line(path, {"run": 3})
    assert list(read_lines(path)) == [{"run": 1}, {"run": 3}]


def test_what_follows_half_a_line_has_a_line_of_its_own(path):
    path.write_bytes(HALF)
    append_line(path, {"run": 3})
    append_line(path, {"run": 4, "text": "\u2028\n"})
    assert list(read_lines(path)) == [{"run": 3}, {"run": 4, "text": "\u2028\n"}]
    assert len(path.read_bytes().splitlines()) == 3


def test_an_interruption_costs_a_journal_only_the_run_under_way(path):
    settings = load_config((), {})
    Journal(path).add(settings, "1", {"rounds": 5})
    path.write_bytes(path.read_bytes() + HALF)
    Journal(path).add(settings, "3", {"rounds": 6})
    assert Journal(path).read(settings) == {"1": {"rounds": 5}, "3": {"rounds": 6}}
