"""Every command that takes a run takes its file: a walk over the tree of commands finds them."""

import re
from typing import cast

import numpy as np
import pytest
from safetensors.numpy import save_file
from support.moved_program import ELSEWHERE, OURS

from troth_cli import tree
from troth_cli.app import build
from troth_cli.run_file import Place, run_file_text
from troth_cli.settings import run_settings

RUN = "1" * 32
DEAD = "http://127.0.0.1:2"
READS = {
    *("status", "dashboard", "plot", "doctor", "hub", "archive keep"),
    *("data fetch", "data push", "data serve"),
    *("run show", "run economics", "case list", "case show"),
    *("checkpoint list", "checkpoint show", "checkpoint fetch", "checkpoint verify"),
    *("checkpoint export", "ledger pull", "audit"),
}
"""The commands that need no key; each other one must refuse a program of a file."""
FAILED = {"audit": 2}
"""The exit code of a failure where it is not 1."""
NO_FILE = {"PATH": "weights.safetensors", "DIR": "folder", "HOST:PORT": "127.0.0.1:0"}
NEEDS = {
    "checkpoint verify": ["--round", "1"],
    "data push": ["--data", "folder"],
    "data serve": ["--data", "folder"],
}
"""Options that a command needs where neither the run's file nor the weights say it."""
VALUES = {"URL": DEAD, "SOL": "1", "ADDRESS": RUN, "N": "1", "INDEX": "1", **NO_FILE}


def is_run(param):
    return "RUN" in str(param.metavar).strip("[]").removesuffix("...").split("|")


@pytest.fixture(scope="module")
def commands():
    """The commands that take a run, by their words, with their parameters."""
    leaves = tree.leaves(cast(tree.Node, build()), "")
    return {path.strip(): node.params for path, node in leaves if any(map(is_run, node.params))}


@pytest.fixture
def here(cli, tmp_path, monkeypatch):
    """A folder with a key and weights, where the commands run."""
    monkeypatch.chdir(tmp_path)
    cli.ok("keys", "new", "key.json")
    save_file({"weight": np.zeros(1, np.float32)}, "weights.safetensors")
    return tmp_path


def write(folder, program):
    settings = run_settings([])
    bound = settings.model_copy(update={"config": settings.config.with_manifest(bytes(range(32)))})
    (folder / "run.toml").write_text(run_file_text(Place(RUN, str(program), (DEAD,)), bound))


def words_of(command, params):
    """A command line of the command with the run's file and whatever else it needs."""
    words = command.split()
    for param in params:
        is_option = param.param_type_name == "option"
        if is_run(param):
            words += [param.opts[0], "run.toml"] if is_option else ["run.toml"]
        elif param.name == "key":
            words += ["--key", "key.json"]
        elif param.required:
            metavar = str(param.metavar).strip("[]")
            value = "new.svg" if metavar == "FILE" else VALUES[metavar.split("|")[0]]
            words += [param.opts[0], value] if is_option else [value]
    return words + NEEDS.get(command, [])


def test_the_walk_finds_the_commands(commands):
    assert len(commands) > 30
    assert commands.keys() >= READS
    assert commands.keys() >= {"join", "witness", "leave", "case open", "run close", "stake show"}


def test_each_asks_the_node_of_the_file(cli, here, commands):
    write(here, OURS)
    asked = {}
    for command, params in commands.items():
        done = cli(*words_of(command, params), "--json")
        asked[command] = (done.code, DEAD in done.out + done.err)
    assert asked == {command: (FAILED.get(command, 1), True) for command in commands}


def test_each_that_signs_refuses_a_program_that_only_the_file_names(cli, here, commands):
    """Threat T126: the file of a run names a program that keeps every stake."""
    write(here, ELSEWHERE)
    refusing = set()
    for command, params in commands.items():
        words = words_of(command, params)
        error = cli(*words, "--json")
        if "troth program verify" in error.err:
            refusing.add(command)
            named = cli(*words, "--json", "--program-id", ELSEWHERE)
            assert DEAD in named.err, command
    assert refusing == commands.keys() - READS


def test_each_takes_a_file_that_lies_elsewhere(cli, here, commands):
    """A path with folders names a file, and one that is not there is named."""
    for command, params in commands.items():
        words = words_of(command, params)
        words[words.index("run.toml")] = "gone/run.toml"
        error = cli.refused(*words, code=FAILED.get(command, 1))
        assert error["subject"] == "gone/run.toml", command


def test_each_asks_for_the_file_where_the_text_is_no_address(cli, here, commands):
    for command, params in commands.items():
        words = words_of(command, params)
        words[words.index("run.toml")] = "nonsense"
        done = cli(*words)
        assert done.code in (1, 2), command
        said = " ".join(done.err.replace("│", " ").split())
        assert "nonsense" in said, command
        assert re.search(r"or (name )?the run's file\.", said), command
