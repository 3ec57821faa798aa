"""Every golden vector, answered by the packages; and every vector file in use."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.golden import checks_judge, checks_rules, checks_start, checks_work, loader

CHECKS = checks_rules.CHECKS | checks_judge.CHECKS | checks_start.CHECKS | checks_work.CHECKS
REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_each_case_gives_the_recorded_answer(name):
    for number, case in enumerate(loader.cases(name)):
        assert CHECKS[name](case["in"]) == case["out"], f"{name}, case {number}"


def test_every_vector_file_is_answered_here():
    assert loader.names() == set(CHECKS)


def test_every_vector_file_that_is_not_for_python_alone_is_answered_in_rust():
    source = REPOSITORY / "programs/coordinator/tests/golden.rs"
    table = re.search(r"const CHECKS.*?\];", source.read_text(encoding="utf-8"), re.DOTALL)
    assert table, f"no CHECKS table in {source}"
    in_rust = set(re.findall(r'\(\s*"(\w+)"', table.group()))
    assert in_rust == {name for name in loader.names() if not name.startswith("py_")}


def test_the_files_are_what_the_generator_writes(tmp_path):
    generator = REPOSITORY / "scripts/gen/vectors.py"
    subprocess.run([sys.executable, generator, "--out", tmp_path], check=True)
    written = {path.stem: path.read_bytes() for path in tmp_path.glob("*.json")}
    assert set(written) == loader.names()
    for name, data in written.items():
        assert data == (loader.FOLDER / f"{name}.json").read_bytes(), name
