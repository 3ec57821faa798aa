"""The start of a run from somebody else's weights: a folder as `transformers` writes it.

Owns: the way from config.json and safetensors to the tensors of round 0, and each refusal.
Never: rounds a value, guesses a tensor, or follows the index out of its folder.
Next: `weights_file.py` for one file; `../model/hugging_face.py` for config.json.

    config.json, model.safetensors                                    one file
    config.json, model.safetensors.index.json, model-0000N-of-...     several, as the index says

`save_pretrained` leaves an older index beside a newer single file. Where both are there, the single
file counts, as in `transformers`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import BaseModel, ValidationError

from troth_attestation.pieces import Float32
from troth_client.checkpoint.errors import CheckpointFileError, StartError
from troth_client.checkpoint.folder import Weights
from troth_client.checkpoint.weights_file import (
    DTYPE_BYTES,
    WeightsFile,
    changed_meanwhile,
    shown,
)
from troth_client.model.export import CONFIG_FILE, WEIGHTS_FILE
from troth_client.model.hugging_face import read_model
from troth_client.model.shapes import EMBEDDING, HEAD, trainable_shapes
from troth_client.runtime.files import read_whole
from troth_coordinator.rules.config import ModelSection

INDEX_FILE: Final = WEIGHTS_FILE + ".index.json"
MAX_INDEX_BYTES: Final = 16 * 2**20
_NAMED: Final = 3
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.safetensors")
_DERIVED: Final = re.compile(r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq")
"""Tables that older versions saved, and that follow from the config."""
_SAME: Final = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "rms_norm_eps_nano",
    "rope_theta",
)
"""The run's model shares these with that of the weights: they decide what it computes."""


@dataclass(frozen=True, slots=True)
class Start:
    """The tensors of round 0 by canonical name, and what was done to make them, for a person."""

    weights: Weights
    notes: tuple[str, ...]


class _Index(BaseModel):
    weight_map: dict[str, str]


def read_start(folder: Path, model: ModelSection) -> Start:
    """Return the weights of a folder as the start of a run of this model.

    16-bit floats become fp32 without loss. Raises ModelConfigError and StartError for weights of
    another model, CheckpointFileError for a file that is missing, damaged or written meanwhile.
    """
    theirs = read_model(folder)
    _check_model(folder, theirs, model)
    stored, passed_over = _stored(folder)
    names, note = _names(folder, theirs, model, stored)
    _check_names(folder, names, stored)
    expected = trainable_shapes(model)
    weights: Weights = {}
    for name, at in names.items():
        file = stored[at]
        if file.shapes[at] != expected[name]:
            raise StartError(
                f"{at} of shape {list(expected[name])} in {file.path}",
                f"shape {list(file.shapes[at])}",
                "The tensors do not fit their own config.json: get both from their maker again.",
            )
        weights[name] = file.tensor(at)
        _check_finite(file, at, weights[name])
    _check_unchanged(folder, theirs, stored)
    halves = sorted({stored[at].dtypes[at] for at in names.values()} - {"F32"})
    dtypes = f"{' and '.join(halves)} became F32, exactly" if halves else ""
    return Start(weights, tuple(filter(None, (dtypes, note, passed_over))))


def _check_model(folder: Path, theirs: ModelSection, model: ModelSection) -> None:
    """Raise StartError unless the run's model computes what that of the weights does."""
    for key in _SAME:
        wanted, found = getattr(model, key), getattr(theirs, key)
        if wanted != found:
            raise StartError(
                f"model.{key} = {wanted} in {folder}, as the run's config has it",
                str(found),
                f"troth run init --from {folder} writes a [model] section that fits.",
            )
    if model.tie_word_embeddings and not theirs.tie_word_embeddings:
        raise StartError(
            f"tied weights in {folder}: model.tie_word_embeddings = true in the run's config",
            "an output matrix of its own",
            "Set model.tie_word_embeddings = false.",
        )


def _check_unchanged(folder: Path, theirs: ModelSection, stored: Mapping[str, WeightsFile]) -> None:
    """Raise CheckpointFileError if the folder was saved anew while it was read."""
    for file in {file.path: file for file in stored.values()}.values():
        file.check_unchanged()
    if read_model(folder) != theirs:
        raise changed_meanwhile(folder / CONFIG_FILE)


def _stored(folder: Path) -> tuple[dict[str, WeightsFile], str]:
    """Return the file of each tensor, and a note. Raises CheckpointFileError, StartError."""
    has_index = (folder / INDEX_FILE).exists()
    if (folder / WEIGHTS_FILE).is_file() or not has_index:
        note = f"{WEIGHTS_FILE} is taken and {INDEX_FILE} passed over, as transformers does"
        return dict.fromkeys(*_opened(folder / WEIGHTS_FILE)), note if has_index else ""
    return _by_index(folder), ""


def _by_index(folder: Path) -> dict[str, WeightsFile]:
    places = _weight_map(folder)
    stored: dict[str, WeightsFile] = {}
    for name in sorted(set(places.values())):
        tensors, file = _opened(folder / name)
        for tensor in tensors:
            if places.get(tensor) != name:
                raise StartError(
                    f"{INDEX_FILE} in {folder} to name {name} for each of its tensors",
                    f"{shown(places.get(tensor, 'nothing'))} for {shown(tensor)}",
                    "Get the index and its files from their maker again.",
                )
        stored |= dict.fromkeys(tensors, file)
    missing = sorted(places.keys() - stored.keys())
    if missing:
        raise StartError(
            f"{len(places)} tensors in the files that {folder / INDEX_FILE} names",
            f"{len(missing)} missing: {', '.join(map(shown, missing[:_NAMED]))}",
            "Get the index and its files from their maker again.",
        )
    return stored


def _opened(path: Path) -> tuple[tuple[str, ...], WeightsFile]:
    file = WeightsFile.open(path, DTYPE_BYTES)
    return tuple(file.shapes), file


def _weight_map(folder: Path) -> Mapping[str, str]:
    """Return tensor -> file name, each in the folder itself."""
    path = folder / INDEX_FILE
    try:
        found = _Index.model_validate(json.loads(read_whole(path, MAX_INDEX_BYTES))).weight_map
    except (OSError, ValueError, RecursionError) as error:
        what = "no weight_map of texts" if isinstance(error, ValidationError) else str(error)[:80]
        raise CheckpointFileError(
            f"the index of safetensors files in {path}", what, "Get it from its maker again."
        ) from error
    for name in found.values():
        if not _PLAIN_NAME.fullmatch(name):
            raise StartError(
                f"only names of safetensors files beside it in {path}",
                shown(name),
                "Do not use this folder: its index names a file elsewhere.",
            )
    return found


def _names(
    folder: Path, theirs: ModelSection, model: ModelSection, stored: Mapping[str, WeightsFile]
) -> tuple[dict[str, str], str]:
    """Return canonical name -> name in the files, and a note about tied weights."""
    names = {name: name for name in trainable_shapes(model)}
    if not theirs.tie_word_embeddings:
        return names, ""
    if HEAD in stored and EMBEDDING in stored:
        head, embedding = (stored[name].tensor(name) for name in (HEAD, EMBEDDING))
        if head.tobytes() != embedding.tobytes():
            raise StartError(
                f"one matrix as {HEAD} and {EMBEDDING} in {folder}, whose config.json ties them",
                "two that differ",
                "Set tie_word_embeddings to false in config.json, if they are meant to differ.",
            )
    one = EMBEDDING if EMBEDDING in stored else HEAD
    names |= dict.fromkeys(names.keys() & {HEAD, EMBEDDING}, one)
    if model.tie_word_embeddings:
        return names, "tied weights stay tied: input and output share one matrix"
    return names, f"tied weights were untied: {HEAD} begins as a copy of {EMBEDDING}"


def _check_names(folder: Path, names: Mapping[str, str], stored: Mapping[str, WeightsFile]) -> None:
    """Raise StartError unless the files hold the tensors of the model, and only those."""
    missing = sorted(set(names.values()) - stored.keys())
    known = {*names.values(), HEAD, EMBEDDING}  # a tied matrix may be there under both names
    extra = sorted(name for name in stored.keys() - known if not _DERIVED.fullmatch(name))
    for what, which in (("missing", missing), ("that the model does not have", extra)):
        if which:
            raise StartError(
                f"the {len(set(names.values()))} tensors of the model in {folder}",
                f"{len(which)} {what}: {', '.join(map(shown, which[:_NAMED]))}",
                "Nothing was loaded: name the folder of a whole LlamaForCausalLM.",
            )


def _check_finite(file: WeightsFile, name: str, values: Float32) -> None:
    num_odd = values.size - int(np.isfinite(values).sum())
    if num_odd:
        raise StartError(
            f"only finite numbers in {shown(name)} in {file.path}",
            f"{num_odd} of {values.size} that are NaN or infinite",
            "No run can go on from such weights: take an older checkpoint of theirs.",
        )
