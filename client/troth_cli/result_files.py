"""Whether results can be written where they were asked for: known before the work, not after it.

Owns: the checks of a folder and of a file, and of the package that draws. Never: writes a result.
Next: `commands/bench.py` and `commands/profile.py`, which measure for minutes.
"""

from pathlib import Path

from troth_cli.errors import OutputFileError


def check_drawing() -> None:
    """Import what draws pictures. Raises ModuleNotFoundError, which the user reads as advice."""
    import matplotlib  # noqa: F401  a missing package is better known now


def check_folder(folder: Path) -> None:
    """Make a folder for results. Raises OutputFileError where none can be made or written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_into(folder)
    except OSError as error:
        raise _unwritable(error, folder) from error


def check_file(path: Path) -> None:
    """Raise OutputFileError where a file could not be written: its folder has to exist."""
    if path.is_dir():
        raise OutputFileError("a file to write", "a folder", "Name a file in it.", str(path))
    try:
        _write_into(path.parent)
    except FileNotFoundError as error:
        raise OutputFileError(
            "a file in a folder that exists",
            f"no folder {path.parent}",
            f"Make it first: mkdir -p {path.parent}",
            str(path),
        ) from error
    except OSError as error:
        raise _unwritable(error, path.parent) from error


def _write_into(folder: Path) -> None:
    import tempfile

    with tempfile.TemporaryFile(dir=folder):
        pass


def _unwritable(error: OSError, folder: Path) -> OutputFileError:
    return OutputFileError(
        "a folder that can be written",
        str(error.strerror).lower(),
        "Name another folder.",
        str(folder),
    )
