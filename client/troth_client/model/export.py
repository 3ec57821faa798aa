"""Weights as a folder that `transformers` loads, and back.

Owns: model.safetensors and config.json of LlamaForCausalLM, and the exact model config beside them.
Never: decides that weights are right; a caller compares their state root with the chain's.
Next: weights.load_weights for what `load_export` returns.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from troth_client.model.errors import ExportError
from troth_client.model.shapes import EMBEDDING, HEAD, check_shapes
from troth_client.runtime.files import atomic_write
from troth_coordinator.rules.config import ModelSection

WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "config.json"
TOKENIZER_FILE = "tokenizer.json"
TOKENIZER_CONFIG_FILE = "tokenizer_config.json"
_TOKENIZER_CONFIG = b'{"tokenizer_class": "PreTrainedTokenizerFast"}\n'
"""Without it, AutoTokenizer expects the tokenizer that the first Llama models had."""
_MODEL_KEY = "troth_model"
_MAX_HEAD_BYTES = 100_000_000

Arrays = Mapping[str, NDArray[np.float32]]


def export(
    folder: Path,
    config: ModelSection,
    weights: Arrays,
    facts: Mapping[str, str] | None = None,
    tokenizer: bytes | None = None,
    end_token: int | None = None,
) -> None:
    """Write the weights (canonical names, fp32) so that `LlamaForCausalLM.from_pretrained` works.

    `facts` (run, round, state root as text) are kept in the header of the weights file;
    `tokenizer` is a tokenizer.json, which `AutoTokenizer.from_pretrained` then finds. Generation
    stops at `end_token`. Raises WeightNamesError, WeightShapeError, DiskFullError.
    """
    check_shapes(config, {name: value.shape for name, value in weights.items()})
    tensors = {name: np.ascontiguousarray(value) for name, value in weights.items()}
    if config.tie_word_embeddings:
        # transformers keeps a shared matrix under the name of the embedding.
        tensors[EMBEDDING] = tensors.pop(HEAD)
    model = json.dumps(config.model_dump(mode="json"), sort_keys=True)
    metadata = {"format": "pt", _MODEL_KEY: model, **(facts or {})}
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / WEIGHTS_FILE, [save(tensors, metadata)])
    if tokenizer is not None:
        atomic_write(folder / TOKENIZER_FILE, [tokenizer])
        atomic_write(folder / TOKENIZER_CONFIG_FILE, [_TOKENIZER_CONFIG])
    text = json.dumps(transformers_config(config, end_token), indent=2, sort_keys=True)
    atomic_write(folder / CONFIG_FILE, [text.encode(), b"\n"])


def load_export(
    folder: Path,
) -> tuple[ModelSection, dict[str, NDArray[np.float32]], dict[str, str]]:
    """Read an export: model config, weights by canonical name, and the facts.

    Raises ExportError when the folder holds no export of ours, WeightNamesError and
    WeightShapeError when its tensors do not fit its config.
    """
    path = folder / WEIGHTS_FILE
    try:
        facts = _metadata(path)
        config = ModelSection.model_validate_json(facts.pop(_MODEL_KEY))
        weights = dict(load_file(path))
    except (OSError, ValueError, KeyError, RecursionError, SafetensorError) as error:
        raise ExportError(
            f"weights exported by troth in {path}",
            f"{type(error).__name__}: {error}",
            "Name a folder written by troth; its config and weights are checked together.",
        ) from error
    facts.pop("format", None)
    if config.tie_word_embeddings and EMBEDDING in weights:
        weights[HEAD] = weights.pop(EMBEDDING)
    check_shapes(config, {name: value.shape for name, value in weights.items()})
    return config, {name: weights[name] for name in sorted(weights, key=str.encode)}, facts


def transformers_config(config: ModelSection, end_token: int | None = None) -> dict[str, object]:
    """Return the config.json of the same architecture, for transformers 4.48 and later."""
    theta = float(config.rope_theta)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.hidden_size // config.num_attention_heads,
        "max_position_embeddings": config.max_position_embeddings,
        "rms_norm_eps": config.rms_norm_eps_nano / 1e9,
        "initializer_range": config.init_std_nano / 1e9,
        "tie_word_embeddings": config.tie_word_embeddings,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "pretraining_tp": 1,
        "use_cache": True,
        "bos_token_id": None,
        "eos_token_id": end_token,
        "pad_token_id": None,
        # Both spellings: version 5 reads the nested one.
        "rope_theta": theta,
        "rope_scaling": None,
        "rope_parameters": {"rope_type": "default", "rope_theta": theta},
        "torch_dtype": "float32",
    }


def _metadata(path: Path) -> dict[str, str]:
    """Read the text fields in the header of a safetensors file."""
    with path.open("rb") as stream:
        prefix = stream.read(8)
        (size,) = struct.unpack("<Q", prefix) if len(prefix) == 8 else (0,)
        if not 0 < size <= _MAX_HEAD_BYTES:
            raise ValueError("no safetensors header")
        head = json.loads(stream.read(size))
    facts = head.get("__metadata__") if isinstance(head, dict) else None
    if not isinstance(facts, dict) or not all(isinstance(one, str) for one in facts.values()):
        raise ValueError("no text fields in the safetensors header")
    return facts
