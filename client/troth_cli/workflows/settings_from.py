"""The settings of a new run for a model that somebody else made.

Owns: which sections of a preset belong to its model, and what takes their place.
Never: writes a file. Next: `../presets/`; `troth_client/model/hugging_face.py` reads the model.
"""

import re
import tomllib
from pathlib import Path
from typing import Final

import tomli_w

from troth_cli.presets import preset_text
from troth_client.model.hugging_face import read_model
from troth_coordinator.rules.units import in_units

_SECTION: Final = re.compile(r"(?m)^(?=\[[a-z]+\]$)")
_ABOUT: Final = """\
# Settings for weights that exist: create the run with `troth run create --from DIR`.
# Every key, its unit and its default: docs/reference/config.md.
"""
_START: Final = """\
[start]
weights = "given" # not drawn: bounds of the judge are measured on them
"""
_JUDGE: Final = """\
[judge]
# Nobody measured this model. Run troth calibrate --start DIR on the machines that take part, and
# put here what it prints; until then troth run create refuses this config on a public cluster.
calibrated = false
"""


def text_from(preset: str, folder: Path) -> str:
    """Return a preset's text with the model of a folder, and without bounds of another model.

    Raises ModelConfigError.
    """
    model = read_model(folder)
    values = in_units(model.model_dump(mode="json"))
    # The whole path may say more about this machine than others need to know.
    own = f"# The model of {folder.resolve().name!a}.\n"
    parts = {
        "[model]": f"[model]\n{own}{tomli_w.dumps(values)}\n{_START}\n",
        "[judge]": f"{_JUDGE}\n",
    }
    text = preset_text(preset)
    if tomllib.loads(text)["data"]["sequence_tokens"] > model.max_position_embeddings:
        parts["[data]"] = f"[data]\nsequence_tokens = {model.max_position_embeddings}\n\n"
    _head, *sections = _SECTION.split(text)
    return _ABOUT + "".join(parts.get(one.partition("\n")[0], one) for one in sections)
