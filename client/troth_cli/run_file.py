"""The file that a run's creator hands to those who join: the settings, bound to the data.

Owns: its TOML form; `settings.py` reads it like any other config file.
Never: holds a key or a path.
Next: `workflows/create.py`, which makes it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import tomli_w

from troth_cli.errors import OutputFileError
from troth_client.runtime.files import atomic_write

if TYPE_CHECKING:
    from troth_coordinator.rules.settings import RunSettings

_ABOUT = """\
# A run of troth. Join it with:  troth join --config THIS_FILE --data DIR --key FILE
# The program holds the hash of everything below except [chain], [hints] and [cli]: a changed value
# is refused. [chain] is what the run was created with; the program's copy counts.
"""


def run_file_text(run: str, settings: "RunSettings") -> str:
    """Return the TOML text; reading it gives equal settings and the run's address."""
    values = settings.model_dump(mode="json")
    config = values.pop("config")
    sections = {"version": config.pop("version"), "cli": {"run_address": run}, **config, **values}
    return f"{_ABOUT}\n{tomli_w.dumps(sections)}"


def check_run_file(path: Path, text: str) -> None:
    """Raise OutputFileError if another file or a folder is in its place."""
    if path.exists() and not (path.is_file() and path.read_bytes() == text.encode("ascii")):
        raise OutputFileError(
            "no file by that name yet", "another one", "Choose a name with --out.", str(path)
        )


def write_run_file(path: Path, text: str) -> None:
    """Write the file, or leave an equal one; OutputFileError if another one is in its place."""
    check_run_file(path, text)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, [text.encode("ascii")])
