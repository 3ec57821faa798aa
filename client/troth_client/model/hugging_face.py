"""The config.json of `transformers` as the model section of a run.

Owns: which Llama models a run can train, and the same model in our units.
Never: reads weights, or passes over a setting that changes what the model computes.
Next: `export.py` for the other direction; `../checkpoint/start.py` for the weights beside it.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from troth_client.model.errors import ModelConfigError
from troth_client.model.export import CONFIG_FILE
from troth_client.runtime.files import read_whole
from troth_coordinator.errors import TrothError
from troth_coordinator.rules.base import validated
from troth_coordinator.rules.config import NANO, ModelSection

MAX_CONFIG_BYTES: Final = 2**20
_CLASS: Final = "LlamaForCausalLM"
_PLAIN_ROPE: Final = (None, "default")


class _Rope(BaseModel):
    """The kind of rotary embeddings, in both spellings, and their base."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
    rope_type: str | None = None
    type: str | None = None
    rope_theta: float | None = None


class _Llama(BaseModel):
    """The keys that decide what a Llama computes, with the defaults of `transformers`."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
    model_type: str
    architectures: tuple[str, ...] | None = None
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    max_position_embeddings: int = 2_048
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10_000
    rope: _Rope = _Rope()
    initializer_range: float = Field(default=0.02, ge=0, le=1)
    tie_word_embeddings: bool = False
    hidden_act: str = "silu"
    attention_bias: bool = False
    mlp_bias: bool = False
    is_causal: bool = True
    quantization_config: object = None

    @model_validator(mode="before")
    @classmethod
    def _one_rope(cls, values: object) -> object:
        """Take the first of both spellings that says anything, and only that, as transformers."""
        if not isinstance(values, dict):
            return values
        rope = values.get("rope_scaling") or values.get("rope_parameters") or {}
        return {**values, "rope": rope}


def read_model(folder: Path) -> ModelSection:
    """Return the model that the config.json of a folder describes.

    Raises ModelConfigError for a file that is missing, damaged or of a model that runs cannot
    train, naming the key.
    """
    path = folder / CONFIG_FILE
    found = _parsed(path)
    for key, value, expected in _limits(found):
        if value != expected:
            raise ModelConfigError(
                f"{key} = {_shown(expected)} in {path}",
                _shown(value),
                "Runs train Llama models with plain rotary embeddings, SiLU and no biases;"
                " choose such a model.",
            )
    heads, theta = found.num_attention_heads, found.rope.rope_theta
    if theta is None:
        theta = found.rope_theta
    values = {
        "vocab_size": found.vocab_size,
        "hidden_size": found.hidden_size,
        "intermediate_size": found.intermediate_size,
        "num_hidden_layers": found.num_hidden_layers,
        "num_attention_heads": heads,
        "num_key_value_heads": found.num_key_value_heads or heads,
        "max_position_embeddings": found.max_position_embeddings,
        "rms_norm_eps_nano": _whole(path, "rms_norm_eps", found.rms_norm_eps, NANO),
        "rope_theta": _whole(path, "rope_theta", theta, 1),
        # Nobody draws weights of a given start, so the nearest value will do.
        "init_std_nano": min(NANO, max(1, round(found.initializer_range * NANO))),
        "tie_word_embeddings": found.tie_word_embeddings,
    }
    try:
        return validated(ModelSection, values, "model")
    except TrothError as error:
        raise ModelConfigError(
            f"a model in {path} that runs can train",
            str(error)[:200],
            "Choose a model of such a shape.",
        ) from error


def _parsed(path: Path) -> _Llama:
    try:
        return _Llama.model_validate(json.loads(read_whole(path, MAX_CONFIG_BYTES)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "its content"
        found = f"{where}: {first['msg'].lower()}"
    except OSError as error:
        found = error.strerror or "no file"
    except (ValueError, RecursionError) as error:
        found = str(error)[:80]
    raise ModelConfigError(
        f"the config.json of a Llama model in {path}",
        found,
        "Name a folder as transformers writes it, with config.json and safetensors.",
    )


def _limits(found: _Llama) -> list[tuple[str, object, object]]:
    """Return key, value, and the only value that a run can train."""
    kind = found.rope.rope_type or found.rope.type
    width = found.hidden_size // max(1, found.num_attention_heads)
    classes = found.architectures or (_CLASS,)
    return [
        ("model_type", found.model_type, "llama"),
        ("architectures", _CLASS if _CLASS in classes else list(classes), _CLASS),
        ("hidden_act", "silu" if found.hidden_act == "swish" else found.hidden_act, "silu"),
        ("attention_bias", found.attention_bias, False),
        ("mlp_bias", found.mlp_bias, False),
        ("is_causal", found.is_causal, True),
        ("rope_scaling", None if kind in _PLAIN_ROPE else kind, None),
        ("head_dim", width if found.head_dim is None else found.head_dim, width),
        ("quantization_config", None if found.quantization_config is None else "one", None),
    ]


def _whole(path: Path, key: str, value: float, units: int) -> int:
    """Return the value in units, which must be a whole number of them."""
    scaled = Fraction(str(value)) * units  # of the digits that a person wrote
    if scaled.denominator != 1:
        raise ModelConfigError(
            f"{key} in {path} as a multiple of 1/{units}",
            str(value),
            "Such a value cannot be hashed exactly; choose another model.",
        )
    return int(scaled)


def _shown(value: object) -> str:
    return ascii(value)[:80]
