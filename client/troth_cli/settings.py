"""Config files: the run's settings, and two tables that fill in options of the command line.

Owns: the destination of each key in a file, and the refusal of unknown keys.
Never: decides the meaning of a value; `troth_coordinator.rules.settings` and typer do.
Next: `options.py`, whose `--config` calls this before the other options are read.

    [cli]                     defaults for an option of every command that has it
    rpc = "http://127.0.0.1:8899"
    [command.run.create]      defaults for the options of one command
    fund = "2"
    [model] [start] [data] [demo] [schedule] [train] [judge] [network] [chain] [hints]   of the run

Keys are the options' names with underscores; `run_address` is the argument RUN. Relative paths
count from the working directory, as they do in flags. Files are laid over each other from left to
right, flags over them. A file with the table [run] is a run's own, which names the run and no
option (`run_file.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from troth_cli import tree
from troth_cli.errors import SettingsError
from troth_cli.run_file import RUN_TABLE, check_run_table

if TYPE_CHECKING:
    from troth_coordinator.rules.settings import Hints, RunSettings

SHARED_TABLE = "cli"
COMMAND_TABLE = "command"
_RUN = "run_address"
_NOT_OF_SETTINGS = (SHARED_TABLE, COMMAND_TABLE, RUN_TABLE)
_NOT_IN_FILES = frozenset({"config", "help", "install_completion", "show_completion"})

Plain = Mapping[str, object]


def use_config_files(context: typer.Context, files: list[Path]) -> list[Path]:
    """Make the files' values the defaults of the command about to run; returns the files.

    Raises ConfigError for files and run settings that cannot be read, SettingsError and
    UnknownKeyError for the command line's own tables.
    """
    if files:
        values = _merged(files)
        _refuse_unknown_sections(values)
        context.default_map = _run_of(context, files) | _defaults(context, values)
    return files


def run_settings(files: Iterable[Path], overrides: Sequence[str] = ()) -> "RunSettings":
    """Return the run's settings from config files and `section.key=value` texts on top.

    Raises ConfigError (unknown key, value out of range, contradiction) and SettingsError.
    """
    from troth_coordinator.rules.settings import settings_from

    return settings_from(run_sections(files, overrides))


def hints_of(files: Iterable[Path], device: str = "") -> "Hints":
    """Return the hints of config files, but the device that the user named, if any.

    Raises as above.
    """
    hints = run_settings(files).hints
    return hints.model_copy(update={"device": device}) if device else hints


def run_sections(files: Iterable[Path], overrides: Sequence[str] = ()) -> dict[str, object]:
    """Return the run's sections as they were written, without defaults; raises as above."""
    from troth_coordinator.config_files import override
    from troth_coordinator.rules.settings import merge

    values = {k: v for k, v in _merged(files).items() if k not in _NOT_OF_SETTINGS}
    layers = [values, *(override(key, text) for key, text in _pairs(overrides))]
    return merge(layers)


def _merged(files: Iterable[Path]) -> dict[str, object]:
    from troth_coordinator.config_files import read_toml
    from troth_coordinator.rules.settings import merge

    layers = []
    for path in files:
        layers.append(read_toml(path))
        check_run_table(path, layers[-1])
    return merge(layers)


def _pairs(overrides: Iterable[str]) -> Iterator[tuple[str, str]]:
    for text in overrides:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise SettingsError(
                "--set section.key=value", repr(text), "Write for example: --set schedule.rounds=40"
            )
        yield key.strip(), value.strip()


def _refuse_unknown_sections(values: Plain) -> None:
    """Raise UnknownKeyError for a key that neither the run nor the command line has."""
    from troth_coordinator.rules.base import refuse_unknown_keys, unknown_key
    from troth_coordinator.rules.config import RunConfig
    from troth_coordinator.rules.params import ChainParams
    from troth_coordinator.rules.settings import Hints

    outside = {*_NOT_OF_SETTINGS, "chain", "hints"}
    for key in values:
        if key not in outside | RunConfig.model_fields.keys():
            raise unknown_key(key, outside | RunConfig.model_fields.keys())
    refuse_unknown_keys(RunConfig, {k: v for k, v in values.items() if k not in outside})
    chain = {k: v for k, v in _table(values, "chain").items() if k != "preset"}
    refuse_unknown_keys(ChainParams, chain, "chain")
    refuse_unknown_keys(Hints, _table(values, "hints"), "hints")


def _run_of(context: typer.Context, files: Iterable[Path]) -> dict[str, object]:
    """Return the last run file as the argument RUN, for commands that have one."""
    from troth_coordinator.config_files import read_toml

    found = [str(path) for path in files if RUN_TABLE in read_toml(path)]
    takes_run = _RUN in _names(tree.node_of(context))
    return {_RUN: found[-1]} if found and takes_run else {}


def _defaults(context: typer.Context, values: Plain) -> dict[str, object]:
    """Return the values for the options of the context's command, by parameter name."""
    root, node, path = tree.root_of(context), tree.node_of(context), tree.path_of(context)
    shared, own = _table(values, SHARED_TABLE), _table(values, COMMAND_TABLE)
    _check_names(SHARED_TABLE, shared, _all_names(root))
    _check_command_tables(root, own, COMMAND_TABLE)
    for name in path:
        own = _table(own, name)
    known = {str(param.name): param for param in node.params}
    chosen = {name: value for name, value in shared.items() if name in known} | own
    return {name: _fitting(known[name], value) for name, value in chosen.items()}


def _check_command_tables(node: tree.Node, table: Plain, where: str) -> None:
    """Refuse tables and keys of commands that do not exist, also of those not run now."""
    below = tree.children(node)
    if not below:
        _check_names(where, table, _names(node))
        return
    _check_names(where, table, set(below))
    for name in table:
        _check_command_tables(below[name], _table(table, name, where), f"{where}.{name}")


def _check_names(where: str, table: Plain, known: set[str]) -> None:
    from troth_coordinator.rules.base import unknown_key

    for name in table:
        if name not in known:
            raise unknown_key(name, known, where)


def _names(node: tree.Node) -> set[str]:
    return {str(param.name) for param in node.params} - _NOT_IN_FILES


def _all_names(root: tree.Node) -> set[str]:
    return set().union(*(_names(node) for _, node in tree.leaves(root, "")))


def _fitting(param: tree.Param, value: object) -> object:
    """Return the value as the option takes it: in a list where it may be repeated."""
    is_repeated = getattr(param, "multiple", False) or param.nargs == -1
    return [value] if is_repeated and not isinstance(value, list) else value


def _table(values: Plain, name: str, where: str = "") -> dict[str, object]:
    table = values.get(name, {})
    if not isinstance(table, Mapping):
        key = f"{where}.{name}" if where else name
        raise SettingsError(f"a table [{key}]", repr(table), f"Write [{key}] on a line.", key)
    return dict(table)
