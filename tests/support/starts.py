"""Folders of weights as `transformers` saves them, written by hand so that each can be spoilt.

Owns: config.json and safetensors of a tiny Llama, whole or in shards. Never: judges them.
Next: states.py for the model; the tests of starts and of `run create --from`.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from support.states import TINY
from troth_client.checkpoint.start import INDEX_FILE
from troth_client.model.export import CONFIG_FILE, WEIGHTS_FILE, transformers_config
from troth_client.model.shapes import EMBEDDING, HEAD, trainable_shapes
from troth_coordinator.rules.config import ModelSection

UNTIED = TINY.model_copy(update={"tie_word_embeddings": False})
NORM = "model.norm.weight"


def tensors_of(
    model: ModelSection = UNTIED, dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """Random weights under the names of transformers, which keeps a tied matrix as embedding."""
    draw = np.random.default_rng(5)
    made = {
        name: torch.from_numpy(draw.standard_normal(shape).astype(np.float32)).to(dtype)
        for name, shape in trainable_shapes(model).items()
    }
    if model.tie_word_embeddings:
        made[EMBEDDING] = made.pop(HEAD)
    return made


def write_config(folder: Path, model: ModelSection = UNTIED, **changes: object) -> None:
    """The config.json of a model; a change to None takes the key away."""
    values = {**transformers_config(model), **changes}
    kept = {key: value for key, value in values.items() if value is not None}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG_FILE).write_text(json.dumps(kept))


def write_start(
    folder: Path, model: ModelSection = UNTIED, tensors: Mapping[str, Tensor] | None = None
) -> Path:
    """A folder with config.json and one safetensors file."""
    write_config(folder, model)
    save_file(dict(tensors_of(model) if tensors is None else tensors), folder / WEIGHTS_FILE)
    return folder


def write_shards(
    folder: Path, model: ModelSection = UNTIED, tensors: Mapping[str, Tensor] | None = None
) -> dict[str, str]:
    """The same in two files with an index; returns which file has which tensor."""
    write_config(folder, model)
    found = dict(tensors_of(model) if tensors is None else tensors)
    names = sorted(found)
    places: dict[str, str] = {}
    for number, part in enumerate((names[:3], names[3:]), 1):
        file = f"model-{number:05d}-of-00002.safetensors"
        save_file({name: found[name] for name in part}, folder / file)
        places |= dict.fromkeys(part, file)
    write_index(folder, places)
    return places


def write_index(folder: Path, places: Mapping[str, str]) -> None:
    """The index of a folder's shards."""
    (folder / INDEX_FILE).write_text(json.dumps({"metadata": {}, "weight_map": dict(places)}))
