"""Reads golden vectors. Next: checks_rules.py and checks_judge.py, which answer them."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "golden"


def cases(name: str) -> list[dict[str, Any]]:
    """Return the cases of one vector file."""
    file = json.loads((FOLDER / f"{name}.json").read_text(encoding="ascii"))
    assert file["name"] == name
    assert file["cases"], f"{name}.json has no cases"
    found: list[dict[str, Any]] = file["cases"]
    return found


def names() -> set[str]:
    """Return the names of all vector files."""
    return {path.stem for path in FOLDER.glob("*.json")}
