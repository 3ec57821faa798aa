"""Configs that `troth run init` writes: the files beside this module, and their names.

Owns: the list. Never: changes a text; what is written is what lies here.
Next: `../commands/init.py`.
"""

from importlib.resources import files
from typing import Final

PRESETS: Final = {
    "localnet": "the model of the demo, 40 rounds, for a chain on this machine",
    "smoke": "ten rounds of the smallest model",
    "25m": "25 M parameters on a public cluster",
    "124m": "124 M parameters, as the smallest GPT-2",
    "350m": "355 M parameters, meant for GPUs",
    "1b": "1.08 B parameters, meant for GPUs",
}
"""Names, and what each of them is."""


def preset_text(name: str) -> str:
    """Return the TOML text of one of `PRESETS`."""
    return (files(__package__) / f"{name}.toml").read_text(encoding="utf-8")
