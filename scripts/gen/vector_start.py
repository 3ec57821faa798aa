"""Golden vectors of what a run starts from: its hashed config, and the root of drawn weights.

Owns: canonical JSON, the config hash, names and shapes of tensors, and the choice of configs.
Never: uses the packages; all of it is written from sections 5.1, 5.5 and 6 of docs/protocol.md.
Next: vectors.py.
"""

from collections.abc import Callable, Iterator
from math import prod
from struct import pack

import vector_reference as ref
from vector_reference import H, var
from vector_stream import Stream

Case = tuple[dict[str, object], object]
Cases = Iterator[Case]
Section = dict[str, object]

TIED: Section = {
    "vocab_size": 11,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "rms_norm_eps_nano": 1_000,
    "rope_theta": 10_000,
    "init_std_nano": 20_000_000,
    "tie_word_embeddings": True,
}
# Eleven layers: in the order of bytes, layer 10 comes before layer 2.
UNTIED = TIED | {
    "num_hidden_layers": 11,
    "num_key_value_heads": 1,
    "init_std_nano": 123_456_789,
    "tie_word_embeddings": False,
}
# Keys are not in the order in which they are hashed.
REST: Section = {
    "version": 3,
    "train": {"sequences_per_payload": 4, "microbatch_sequences": 2, "clip_micro": 1_000_000},
    "start": {"weights": "drawn"},
    "schedule": {
        "rounds": 40,
        "lr_nano": 3_000_000,
        "warmup_rounds": 2,
        "decay_from_round": 30,
        "wd_nano": 0,
    },
    "network": {"hubs": [], "stores": []},
    "judge": {
        "openings_tiles": 64,
        "ok_bound_micro": 30_000,
        "mismatch_bound_micro": 100_000,
        "tile_bound_micro": 120_000,
        "tile_mismatch_bound_micro": 180_000,
        "ok_tiles": 2,
        "mismatch_tiles": 6,
        "tile_mismatch_micro": 500_000,
        "tile_forged_micro": 3_000_000,
        "residual_bound_micro": 20_000_000,
        "residual_mismatch_micro": 200_000_000,
        "residual_tile_ok_micro": 60_000_000,
        "gradient_floor_micro": 10_000,
        "sent_floor_log2": 40,
        "agreement_bound_micro": 0,
        "agreement_audits": 0,
        "calibrated": False,
    },
    "demo": {"k": 32, "beta_micro": 950_000, "alpha_micro": 1_000_000},
}
HOLDERS: Section = {
    "hubs": ["https://hub.example:7000", 'http://[::1]:7000/a"b\\c'],
    "stores": ["s3://bucket/prefix"],
}


def config(s: Stream) -> Cases:
    """Hash configs: texts that need escapes, lists in their order, both words of a switch."""
    tied, untied = configs(s)
    hubs = HOLDERS["hubs"]
    assert isinstance(hubs, list)
    turned = HOLDERS | {"hubs": hubs[::-1]}
    given = untied | {"start": {"weights": "given"}}
    for one in (tied, untied, given, tied | {"network": HOLDERS}, tied | {"network": turned}):
        out = {"canonical": canonical(one), "hash": config_hash(one).hex()}
        yield {"config": one}, out


def genesis(s: Stream) -> Cases:
    """Draw all tensors of a model, and fold them into the root of round 0, cursor 0."""
    for one in configs(s):
        run, model = s.bytes(32), one["model"]
        assert isinstance(model, dict)
        named = shapes(model)
        std = model["init_std_nano"]
        tensors = {name: (dims, drawn(run, name, prod(dims), std)) for name, dims in named.items()}
        root = ref.state_root(tensors, 0, 0, config_hash(one))
        out = {"shapes": [[name, dims] for name, dims in named.items()], "root": root.hex()}
        yield {"run": run.hex(), "config": one}, out


def configs(s: Stream) -> tuple[Section, Section]:
    """Return a config with a tied embedding and one without, each with a data set of its own."""
    tied, untied = (
        REST | {"model": model, "data": {"sequence_tokens": 16, "manifest_hash": s.bytes(32).hex()}}
        for model in (TIED, UNTIED)
    )
    return tied, untied


def canonical(value: object) -> str:
    """Return the one way to write a value: no blanks, keys sorted."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{text(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def text(value: str) -> str:
    """Return a text with its two escapes."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def config_hash(value: Section) -> bytes:
    """Return the hash of a config."""
    return H("troth:config", var(canonical(value).encode("ascii")))


def shapes(model: dict[str, int]) -> dict[str, list[int]]:
    """Return names and shapes in the order of the names' bytes."""
    vocabulary, hidden, inner = (
        model[key] for key in ("vocab_size", "hidden_size", "intermediate_size")
    )
    keys = hidden * model["num_key_value_heads"] // model["num_attention_heads"]
    found = {"lm_head.weight": [vocabulary, hidden], "model.norm.weight": [hidden]}
    if not model["tie_word_embeddings"]:
        found["model.embed_tokens.weight"] = [vocabulary, hidden]
    for number in range(model["num_hidden_layers"]):
        layer = f"model.layers.{number}"
        for part in ("input_layernorm", "post_attention_layernorm"):
            found[f"{layer}.{part}.weight"] = [hidden]
        for part, rows in (("q", hidden), ("o", hidden), ("k", keys), ("v", keys)):
            found[f"{layer}.self_attn.{part}_proj.weight"] = [rows, hidden]
        for part in ("gate", "up"):
            found[f"{layer}.mlp.{part}_proj.weight"] = [inner, hidden]
        found[f"{layer}.mlp.down_proj.weight"] = [hidden, inner]
    return {name: found[name] for name in sorted(found, key=str.encode)}


def drawn(run: bytes, name: str, size: int, std_nano: int) -> bytes:
    """Return the first values of a tensor as fp32 bytes; norms are one."""
    if name.endswith("norm.weight"):
        return pack("<f", 1.0) * size
    return ref.initial(run, name, size, std_nano)


PYTHON: tuple[Callable[[Stream], Cases], ...] = (config, genesis)
