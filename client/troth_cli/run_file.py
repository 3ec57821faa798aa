"""The file that a run's creator hands to those who join: where the run is, and its settings.

Owns: its TOML form, and what such a file may say: it comes from a stranger.
Never: holds a key, or names a folder outside its own.
Next: `workflows/create.py`, which makes it; `fallbacks.py`, which takes values from it.

    [run]
    address = "..."           the run
    program_id = "..."        the program it belongs to
    rpc = ["..."]             RPC nodes of its cluster; none where they hold somebody's access key
    data = "data"             its data set, in a folder beside the file
    start = "base"            the weights that it starts from, in a folder beside the file
    [model] [data] [demo] ... the settings, in the units of a person
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import tomli_w

from troth_cli.errors import OutputFileError, SettingsError
from troth_cli.solana_config import rpc_url
from troth_client.runtime.files import atomic_write

if TYPE_CHECKING:
    from troth_coordinator.rules.settings import RunSettings

RUN_TABLE: Final = "run"
KEYS: Final = ("address", "program_id", "rpc", "data", "start")
_NOT_BESIDE: Final = ("cli", "command")
_ABOUT: Final = """\
# A run of troth. Join it with:  troth join THIS_FILE --key FILE
# Every command that takes RUN takes this file, too. The program holds the hash of everything below
# except [run], [chain] and [hints]: a changed value is refused. [chain] is what the run was created
# with; the program's copy counts.
"""


@dataclass(frozen=True, slots=True)
class RunFile:
    """A run file as it was read. `data` and `start` are existing folders beside it, or None."""

    path: Path
    address: str
    program_id: str = ""
    rpc: tuple[str, ...] = ()
    data: Path | None = None
    start: Path | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a new run, for its file. `data` and `start` are relative to it, or ""."""

    address: str
    program_id: str
    rpc: tuple[str, ...] = ()
    data: str = ""
    start: str = ""


def run_file_text(place: Place, settings: "RunSettings") -> str:
    """Return the TOML text; reading it gives equal settings and the same place."""
    from troth_coordinator.rules.units import in_units

    values = settings.model_dump(mode="json")
    config = values.pop("config")
    run: dict[str, object] = {"address": place.address, "program_id": place.program_id}
    run |= {"rpc": list(place.rpc)} if place.rpc else {}
    run |= {"data": place.data} if place.data else {}
    run |= {"start": place.start} if place.start else {}
    head = {"version": config.pop("version"), RUN_TABLE: run}
    sections = {name: in_units(section) for name, section in (config | values).items()}
    return f"{_ABOUT}\n{tomli_w.dumps(head | sections)}"


def is_public_url(url: str) -> bool:
    """Tell whether an address of an RPC node may be shown: no name, query or path is a key."""
    parts = urlsplit(url)
    return not (parts.username or parts.password or parts.query or parts.path.strip("/"))


def beside(file: Path, folder: Path) -> str:
    """Return a folder as the file may name it: "" unless it lies in the file's own folder."""
    inside, home = folder.resolve(), file.resolve().parent
    return inside.relative_to(home).as_posix() if inside.is_relative_to(home) else ""


def names_file(text: str) -> bool:
    """Tell whether the text in place of an address is a path: base58 has neither dot nor slash."""
    return "." in text or "/" in text or (bool(text) and Path(text).is_file())


def read_run_file(path: Path) -> RunFile:
    """Return what a file says about its run. Raises SettingsError, InvalidValueError."""
    from troth_coordinator.config_files import read_toml

    values = read_toml(path)
    check_run_table(path, values)
    table = values.get(RUN_TABLE)
    if not isinstance(table, Mapping):
        raise _wrong(
            path,
            "a run file with a table [run], as `troth run create` writes it",
            "none",
            RUN_TABLE,
        )
    rpc = table.get("rpc", ())
    urls = tuple(rpc_url(str(url)) for url in ([rpc] if isinstance(rpc, str) else rpc))
    data, start = (_folder(path, name, str(table.get(name, ""))) for name in ("data", "start"))
    program_id = str(table.get("program_id", ""))
    return RunFile(path, str(table["address"]), program_id, urls, data, start)


def check_run_table(path: Path, values: Mapping[str, object]) -> None:
    """Refuse what a run file may not hold; files without [run] pass. Raises SettingsError."""
    table = values.get(RUN_TABLE)
    if table is None:
        return
    for name in _NOT_BESIDE:
        if name in values:
            raise _wrong(path, "no options of commands in a run file", f"[{name}]", name)
    if not isinstance(table, Mapping):
        raise _wrong(path, "a table [run]", repr(table), RUN_TABLE)
    for key, value in table.items():
        where = f"{RUN_TABLE}.{key}"
        if key not in KEYS:
            raise _wrong(path, f"only {', '.join(KEYS)} in [run]", key, where)
        is_list = key == "rpc" and isinstance(value, list)
        if not all(isinstance(one, str) and one for one in (value if is_list else [value])):
            raise _wrong(path, "text", repr(value), where)
    if "address" not in table:
        raise _wrong(path, "the run's address", "none", f"{RUN_TABLE}.address")


def check_run_file(path: Path, text: str) -> None:
    """Raise OutputFileError if another file is in its place, or the text cannot be written."""
    data = _encoded(path, text)
    if path.exists() and not (path.is_file() and path.read_bytes() == data):
        raise OutputFileError(
            "no file by that name yet", "another one", "Choose a name with --out.", str(path)
        )


def write_run_file(path: Path, text: str) -> None:
    """Write the file, or leave an equal one; OutputFileError if another one is in its place."""
    check_run_file(path, text)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, [_encoded(path, text)])


def _encoded(path: Path, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise OutputFileError(
            "names of folders in UTF-8",
            repr(error.object[error.start : error.end]),
            "Rename the folder.",
            str(path),
        ) from error


def _folder(path: Path, key: str, text: str) -> Path | None:
    """Return the folder that a file names beside itself; None if it names none or it is gone."""
    if not text:
        return None
    named = PurePosixPath(text)
    home = path.resolve().parent
    folder = (home / named).resolve()
    if named.is_absolute() or ".." in named.parts or not folder.is_relative_to(home):
        raise _wrong(path, "a folder beside the file", repr(text), f"{RUN_TABLE}.{key}")
    return path.parent / named if folder.is_dir() else None


def _wrong(path: Path, expected: str, found: str, key: str) -> SettingsError:
    return SettingsError(
        expected,
        found,
        "A run file comes from somebody else and may not say more: correct it, or give the run's"
        " address and your own options.",
        f"{path}: {key}",
    )
