"""Values that the command line left open: the RPC node, and the key of commands that sign.

Owns: the order of sources after flags, the environment and config files, and the line that says
what was taken from where.
Never: overrides what somebody named.
Next: `solana_config.py` for the last source; `options.py`, which calls this for every command.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path

import typer

from troth_cli.errors import InputError
from troth_cli.solana_config import LOCAL_RPC, SolanaConfig, read_solana_config, rpc_url

KEY = "key"
"""The option of the key that signs."""

Note = Callable[[str], None]


def signs(options: type) -> bool:
    """Tell whether a command signs: its options have a key that it cannot do without."""
    return any(entry.name == KEY and entry.default is MISSING for entry in fields(options))


def filled(
    options: type, values: Mapping[str, object], context: typer.Context, note: Note
) -> dict[str, object]:
    """Return the values with RPC node and key from Solana's config where nobody named them.

    Raises SettingsError and InputError for a config that cannot be used, typer.BadParameter without
    any key.
    """
    known = dict(values)
    wants_key = signs(options) and known[KEY] is None
    if known["rpc"] and not wants_key:
        return known
    config = _solana_config()
    taken = []
    if not known["rpc"]:
        url = rpc_url(config.rpc) if config is not None and config.rpc else LOCAL_RPC
        known["rpc"] = [url]
        if config is not None and config.rpc:
            taken.append(f"RPC node {url}")
    if wants_key:
        key = _key_of(config, context)
        known[KEY] = key
        taken.append(f"key file {key}")
    if config is not None and taken:
        note(f"Taken from {config.path}: {', '.join(taken)}.")
    return known


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
