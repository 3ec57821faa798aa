"""Names of clusters, and the config file of Solana's own command line.

Owns: what a cluster's name stands for, and the two values that we take from that file: the RPC node
and the key file. Never: writes the file, or reads a key.
Next: `fallbacks.py`, which asks here when nobody named these values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from troth_cli.errors import SettingsError

LOCAL_RPC: Final = "http://127.0.0.1:8899"
"""The default address of `troth localnet up`."""

MONIKERS: Final[Mapping[str, str]] = {
    "localhost": LOCAL_RPC,
    "devnet": "https://api.devnet.solana.com",
    "testnet": "https://api.testnet.solana.com",
    "mainnet-beta": "https://api.mainnet-beta.solana.com",
}
"""The names that `solana config set --url` takes, and what each stands for."""

_SHORT: Final = {name[0]: name for name in MONIKERS}
_RPC, _KEY = "json_rpc_url", "keypair_path"


@dataclass(frozen=True, slots=True)
class SolanaConfig:
    """The values of one config file; "" where it has none."""

    path: Path
    rpc: str
    key: str


def rpc_url(text: str) -> str:
    """Return the address that a cluster's name or its first letter stands for, else the text."""
    return MONIKERS.get(_SHORT.get(text, text), text)


def read_solana_config(home: Path) -> SolanaConfig | None:
    """Return the config of Solana's command line, None without one.

    Raises SettingsError for a file that cannot be read, or whose values are no text.
    """
    path = home / ".config" / "solana" / "cli" / "config.yml"
    if not path.exists():
        return None
    import yaml

    try:
        # Every scalar is text: tags and merge keys of a broken file are not acted upon.
        values = yaml.load(path.read_bytes(), Loader=yaml.BaseLoader)
    except (OSError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        found = getattr(error, "strerror", None) or getattr(error, "problem", None) or error
        raise _damaged(path, str(found).lower()) from error
    if not isinstance(values, Mapping):
        raise _damaged(path, f"YAML that holds a {type(values).__name__}, not keys and values")
    for name in (_RPC, _KEY):
        value = values.get(name, "")
        if not isinstance(value, str):
            raise _damaged(path, f"{name} that is a {type(value).__name__}, not text")
        if not value.isprintable():
            raise _damaged(path, f"{name} with characters that cannot be printed")
    return SolanaConfig(path, values.get(_RPC, "").strip(), values.get(_KEY, "").strip())


def _damaged(path: Path, found: str) -> SettingsError:
    return SettingsError(
        "the config of Solana's command line, in YAML",
        found,
        "Correct it with `solana config set`, or name --rpc and --key yourself.",
        str(path),
    )
