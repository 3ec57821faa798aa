"""Values that the command line left open: from the run's file, then from Solana's own config.

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
    if names_file(text):
        known |= _of_run_file(read_run_file(Path(text)), known, note if is_signing else None)
    wants_key = is_signing and known[KEY] is None
    if known["rpc"] and not wants_key:
        return known
    config = _solana_config()
    taken = []
    if not known["rpc"]:
        url = rpc_url(config.rpc) if config is not None and config.rpc else LOCAL_RPC
        known["rpc"] = [url]
        if config is not None and config.rpc:
            taken.append(f"RPC node {_shown(url)}")
    if wants_key:
        key = _key_of(config, context)
        known[KEY] = key
        taken.append(f"key file {key}")
    if config is not None and taken:
        note(f"Taken from {config.path}: {', '.join(taken)}.")
    return known


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


def _of_run_file(file: RunFile, known: Mapping[str, Any], signing_note: Note | None) -> Values:
    """Return the values that change: the run's address, its file among the configs, and the rest.

    `signing_note` is there for commands that sign. They say which node they take from the file, and
    no program that the user has not named.
    """
    found = _with_address(known, file.address)
    if file.path not in known["config"]:
        found["config"] = [file.path, *known["config"]]
    if signing_note is not None:
        _check_program(file, str(known["program_id"]))
    if not known["program_id"]:
        found["program_id"] = file.program_id
    if not known["rpc"] and file.rpc:
        found["rpc"] = list(file.rpc)
        if signing_note is not None:
            signing_note(f"Taken from {file.path}: RPC node {', '.join(map(_shown, file.rpc))}.")
    if "data" in known and known["data"] is None:
        found["data"] = file.data
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
