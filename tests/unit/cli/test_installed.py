"""Install hints name the command for the way in which troth was installed."""

from pathlib import Path

import pytest

from troth_client.runtime.installed import command_for, install_command

TREE = {"url": "file:///home/ada/troth", "dir_info": {"editable": True}}
COPY = {"url": "file:///home/ada/troth", "dir_info": {}}
WHEEL = {"url": "file:///tmp/troth-0.1.0-py3-none-any.whl", "archive_info": {}}


@pytest.mark.parametrize(
    ("record", "environment", "command"),
    [
        (TREE, "/home/ada/troth/.venv", ".venv/bin/pip install -e '.[data]' (in the source tree)"),
        (TREE, "/opt/env", "python -m pip install -e '.[data]' (in the source tree)"),
        (COPY, "/opt/env", "python -m pip install '.[data]' (in the source tree)"),
        (
            WHEEL,
            "/opt/env",
            "pip install 'troth[data] @ file:///tmp/troth-0.1.0-py3-none-any.whl'",
        ),
        ({}, "/opt/env", "pip install 'troth[data]'"),
    ],
)
def test_the_command_follows_the_installers_record(record, environment, command):
    assert command_for(record, ("data",), Path(environment)) == command


def test_several_extras_are_one_command():
    assert command_for({}, ("train", "data")) == "pip install 'troth[train,data]'"


def test_the_tests_run_from_a_source_tree():
    assert install_command("data").endswith("install -e '.[data]' (in the source tree)")
