"""How troth was installed, and the command that adds packages to it in the same way.

Owns: the one place that writes an install command for people. Never: installs anything.
Next: `troth_cli/failures.py` and `data/hugging_face.py`, whose errors name the command.
"""

import json
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_NAME: Final = "troth"
_RECORD: Final = "direct_url.json"
"""Written by an installer where a package came from a folder or a file instead of an index."""
_OWN_ENVIRONMENT: Final = ".venv"
"""The folder in the source tree in which `make setup` installs."""


def install_command(*extras: str) -> str:
    """Return the command that installs these extras, for the way in which troth was installed.

    A source tree names itself, a wheel the file that it came from, an index only the name.
    """
    try:
        text = Distribution.from_name(_NAME).read_text(_RECORD)
    except PackageNotFoundError:
        return command_for({"dir_info": {"editable": True}}, extras)
    return command_for(json.loads(text) if text else {}, extras, Path(sys.prefix))


def command_for(
    record: dict[str, object], extras: tuple[str, ...], environment: Path | None = None
) -> str:
    """Return the command for what an installer recorded; `environment` is that of this process."""
    wanted = ",".join(extras)
    url, folder = str(record.get("url", "")), record.get("dir_info")
    if isinstance(folder, dict):
        tree = Path(unquote(urlsplit(url).path)) if url else None
        is_own = tree is not None and environment == tree / _OWN_ENVIRONMENT
        pip = f"{_OWN_ENVIRONMENT}/bin/pip" if is_own or tree is None else "python -m pip"
        editable = "-e " if folder.get("editable") else ""
        return f"{pip} install {editable}'.[{wanted}]' (in the source tree)"
    if url:
        return f"pip install '{_NAME}[{wanted}] @ {url}'"
    return f"pip install '{_NAME}[{wanted}]'"
