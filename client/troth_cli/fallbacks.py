"""Values that the command line left open: from the run's file, and from Solana's own config.

Owns: the order of sources after flags, the environment and config files, what a command that signs
takes from a stranger's file, and the lines that say what was taken from where.
Never: overrides what somebody named.
Next: `run_file.py` and `solana_config.py` for the two sources; `options.py`, which calls this for
every command that talks to a chain.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

import typer

from troth_cli.errors import InputError
from troth_cli.run_file import RunFile, names_file, read_run_file
from troth_cli.solana_config import LOCAL_RPC, SolanaConfig, read_solana_config, rpc_url

KEY = "key"
"""The option of the key that signs."""

_SUFFIX: Final = ".toml"

Note = Callable[[str], None]
Values = dict[str, Any]


def signs(options: type) -> bool:
    """Tell whether a command signs: its options have a key that it cannot do without."""
    return any(entry.name == KEY and entry.default is MISSING for entry in fields(options))


def filled(options: type, values: Mapping[str, Any], context: typer.Context, note: Note) -> Values:
    """Return the values with those that nobody named taken from run file and Solana's config.

    Raises SettingsError and InputError for files that cannot be used, typer.BadParameter without
    any key.
    """
    known = dict(values)
    is_signing = signs(options)
    text = _run_text(known)
    file = read_run_file(Path(text)) if names_file(text) else None
    if file is not None:
        if is_signing:
            _check_program(file, str(known["program_id"]))
        known |= _of_run_file(file, known)
    wants_key = is_signing and known[KEY] is None
    if known["rpc"] and not wants_key:
        return known
    config = _solana_config()
    taken = []
    if not known["rpc"]:
        source, known["rpc"] = _nodes(config, file)
        nodes = f"RPC node {', '.join(map(_shown, known['rpc']))}"
        if config is not None and source == config.path:
            taken.append(nodes)
        elif source is not None and is_signing:
            note(f"Taken from {source}: {nodes}.")
    if wants_key:
        key = _key_of(config, context)
        known[KEY] = key
        taken.append(f"key file {key}")
    if config is not None and taken:
        note(f"Taken from {config.path}: {', '.join(taken)}.{_others(file, known['rpc'])}")
    return known


def _nodes(config: SolanaConfig | None, file: RunFile | None) -> tuple[Path | None, list[str]]:
    """Return the RPC nodes that nobody named, and the file that has them: the user's own first."""
    if config is not None and config.rpc:
        return config.path, [rpc_url(config.rpc)]
    if file is not None and file.rpc:
        return file.path, list(file.rpc)
    return None, [LOCAL_RPC]


def _others(file: RunFile | None, urls: list[str]) -> str:
    """Return a hint where the run's file names other RPC nodes: its cluster may be another one."""
    if file is None or not file.rpc or set(file.rpc) & set(urls):
        return ""
    return f" {file.path} names {', '.join(map(_shown, file.rpc))}: give --rpc for that one."


def _run_text(known: Values) -> str:
    """Return the text in place of a run, "" if there is none.

    Sources of weights and of pictures are paths as well: of them only a .toml is a run's file.
    """
    match known:
        case {"run_address": str(text)}:
            return text
        case {"source": str(text)} | {"sources": [str(text)]} if text.endswith(_SUFFIX):
            return text
    return ""


def _with_address(known: Mapping[str, Any], address: str) -> Values:
    """Return the address where the command looks for the text in place of a run."""
    if "run_address" in known:
        return {"run_address": address}
    return {"source": address} if "source" in known else {"sources": [address]}


def _of_run_file(file: RunFile, known: Mapping[str, Any]) -> Values:
    """Return what changes but the RPC node: address, program, data, the file among the configs."""
    found = _with_address(known, file.address)
    if file.path not in known["config"]:
        found["config"] = [file.path, *known["config"]]
    if not known["program_id"]:
        found["program_id"] = file.program_id
    for name, folder in (("data", file.data), ("start", file.start)):
        if name in known and known[name] is None:
            found[name] = folder
    return found


def _check_program(file: RunFile, named: str) -> None:
    """Refuse to sign for a program that only the file names: it may take any stake."""
    from troth_coordinator.chain.layouts import program_layout

    packaged = str(program_layout().program_id)
    if file.program_id in ("", packaged, named):
        return
    raise InputError(
        f"a run of the program {named or packaged}",
        f"one of {file.program_id}, which may do anything with a stake",
        f"Look at it with `troth program verify {file.program_id}`. If you trust it, add"
        f" --program-id {file.program_id}",
        str(file.path),
    )


def _shown(url: str) -> str:
    """Return scheme and host of an address: behind them it may hold a key."""
    from troth_coordinator.chain.rpc_health import node_name

    return node_name(url)


def _solana_config() -> SolanaConfig | None:
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and no account to look it up by
        return None
    return read_solana_config(home)


def _key_of(config: SolanaConfig | None, context: typer.Context) -> Path:
    if config is None or not config.key:
        raise typer.BadParameter(
            "Missing option '--key': name a key file, or set one for all commands with"
            " `solana config set --keypair FILE`.",
            ctx=context,
        )
    if "://" in config.key or config.key == "ASK":
        raise InputError(
            "a key file as keypair_path",
            config.key,
            "Name one with --key: wallets that are no file cannot sign here.",
            str(config.path),
        )
    return Path(config.key)
