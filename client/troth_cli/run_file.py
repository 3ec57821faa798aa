"""The file that a run's creator hands to those who join: the settings, bound to the data.

Owns: its TOML form; `settings.py` reads it like any other config file.
Never: holds a key or a path.
Next: `workflows/create.py`, which makes it.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

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
    sections: dict[str, Mapping[str, object]] = {"cli": {"run_address": run}}
    config = values.pop("config")
    version = config.pop("version")
    sections.update(config)
    sections.update(values)
    blocks = [_ABOUT, f"version = {version}\n", *(_section(*item) for item in sections.items())]
    return "\n".join(blocks)


def check_run_file(path: Path, text: str) -> None:
    """Raise OutputFileError where something else lies in the file's place."""
    if path.exists() and not (path.is_file() and path.read_bytes() == text.encode("ascii")):
        raise OutputFileError(
            "no file by that name yet", "another one", "Choose a name with --out.", str(path)
        )


def write_run_file(path: Path, text: str) -> None:
    """Write the file, or leave it where it already says the same; OutputFileError otherwise."""
    check_run_file(path, text)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, [text.encode("ascii")])


def _section(name: str, values: Mapping[str, object]) -> str:
    return "\n".join([f"[{name}]", *_lines(values), ""])


def _lines(values: Mapping[str, object]) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, bool):
            yield f"{key} = {str(value).lower()}"
        elif isinstance(value, int):
            yield f"{key} = {value}"
        else:
            # Plain words and hexadecimal digits only: the settings hold no other text.
            yield f'{key} = "{value}"'
