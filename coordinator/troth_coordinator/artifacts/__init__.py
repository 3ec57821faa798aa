"""The program's build products, shipped as package data.

Owns: finding and reading them: the images, the IDL, the layout, the compute-unit table, build info.
Never: builds or changes them (`make program` and scripts/gen do).
Next: ../chain/layouts.py and ../chain/codec.py give them meaning.
"""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from troth_coordinator.chain.errors import ArtifactError

PROGRAM_V0: Final = "coordinator_v0.so"
PROGRAM_V3: Final = "coordinator_v3.so"
IDL: Final = "coordinator.idl.json"
LAYOUT: Final = "layout.json"
COMPUTE_UNITS: Final = "compute_units.json"


def path(name: str) -> Path:
    """Return the file's path; the package must be installed unpacked, as pip does."""
    with as_file(files(__package__) / name) as found:
        return found


def read_bytes(name: str) -> bytes:
    """Return the content of an artefact; ArtifactError if it is not there."""
    try:
        return (files(__package__) / name).read_bytes()
    except FileNotFoundError as error:
        raise ArtifactError(
            name,
            "a file in the installed package",
            "nothing by that name",
            "reinstall troth, or run `make program` in a source checkout",
        ) from error


def read_json(name: str) -> dict[str, object]:
    """Return a JSON artefact's object; ArtifactError if missing, not JSON or not an object."""
    try:
        value = json.loads(read_bytes(name))
    except ValueError as error:
        raise _altered(name, f"text that is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise _altered(name, f"a JSON {type(value).__name__}")
    return value


def exists(name: str) -> bool:
    """Tell whether an artefact is packaged; the compute-unit table may be absent."""
    return (files(__package__) / name).is_file()


def program_image() -> bytes:
    """Return the program's sBPF V0 image."""
    return read_bytes(PROGRAM_V0)


def _altered(name: str, found: str) -> ArtifactError:
    return ArtifactError(name, "a JSON object", found, "reinstall troth")
