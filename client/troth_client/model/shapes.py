"""Names and shapes of everything that a run trains, straight from the model config.

Owns: the canonical list of tensors; tiles, state roots and first weights all follow it.
Never: imports torch, because the command line and auditors run without it.
Next: init.py draws values for these tensors; llama.py builds modules with the same names.
"""

import math
from collections.abc import Mapping

from troth_client.model.errors import WeightNamesError, WeightShapeError
from troth_coordinator.rules.config import ModelSection

EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"
NORM_SUFFIX = "norm.weight"

Shape = tuple[int, ...]


def trainable_shapes(config: ModelSection) -> dict[str, Shape]:
    """Canonical name -> shape, in canonical order (names sorted as UTF-8 bytes).

    Tied tensors appear once, under the smallest of their names: the shared matrix of a tied model
    is `lm_head.weight` here (protocol section 5.1).
    """
    hidden, wide = config.hidden_size, config.intermediate_size
    head_dim = hidden // config.num_attention_heads
    queries = config.num_attention_heads * head_dim
    groups = config.num_key_value_heads * head_dim
    shapes: dict[str, Shape] = {
        HEAD: (config.vocab_size, hidden),
        "model.norm.weight": (hidden,),
    }
    if not config.tie_word_embeddings:
        shapes[EMBEDDING] = (config.vocab_size, hidden)
    for index in range(config.num_hidden_layers):
        layer = f"model.layers.{index}."
        shapes |= {
            layer + "input_layernorm.weight": (hidden,),
            layer + "post_attention_layernorm.weight": (hidden,),
            layer + "self_attn.q_proj.weight": (queries, hidden),
            layer + "self_attn.k_proj.weight": (groups, hidden),
            layer + "self_attn.v_proj.weight": (groups, hidden),
            layer + "self_attn.o_proj.weight": (hidden, queries),
            layer + "mlp.gate_proj.weight": (wide, hidden),
            layer + "mlp.up_proj.weight": (wide, hidden),
            layer + "mlp.down_proj.weight": (hidden, wide),
        }
    return {name: shapes[name] for name in sorted(shapes, key=str.encode)}


def num_parameters(config: ModelSection) -> int:
    """Return the number of trainable parameters of a model."""
    return sum(math.prod(shape) for shape in trainable_shapes(config).values())


def check_shapes(config: ModelSection, found: Mapping[str, Shape]) -> None:
    """Compare tensors at hand with the canonical list.

    Raises WeightNamesError or WeightShapeError, naming the first differences.
    """
    expected = trainable_shapes(config)
    missing, unknown = (
        sorted(expected.keys() - found.keys()),
        sorted(found.keys() - expected.keys()),
    )
    if missing or unknown:
        raise WeightNamesError(
            f"the {len(expected)} tensors of the model config",
            f"{len(missing)} missing {missing[:3]}, {len(unknown)} unknown {unknown[:3]}",
            "Use weights of this run's model config.",
        )
    for name, shape in expected.items():
        if tuple(found[name]) != shape:
            raise WeightShapeError(
                f"{name} of shape {list(shape)}",
                f"shape {list(found[name])}",
                "Use weights of this run's model config.",
            )
