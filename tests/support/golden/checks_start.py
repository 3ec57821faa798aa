"""How the packages answer the golden vectors of what a run starts from. Next: checks_rules.py."""

from typing import Any

from troth_client.model.genesis import genesis_root
from troth_client.model.shapes import trainable_shapes
from troth_coordinator.rules.base import validated
from troth_coordinator.rules.config import RunConfig

Given = dict[str, Any]


def py_config(given: Given) -> Any:
    config = validated(RunConfig, given["config"])
    canonical = config.canonical_json().decode("ascii")
    return {"canonical": canonical, "hash": config.config_hash().hex()}


def py_genesis(given: Given) -> Any:
    config = validated(RunConfig, given["config"])
    shapes = [[name, list(shape)] for name, shape in trainable_shapes(config.model).items()]
    return {"shapes": shapes, "root": genesis_root(bytes.fromhex(given["run"]), config).hex()}


CHECKS = {check.__name__: check for check in (py_config, py_genesis)}
