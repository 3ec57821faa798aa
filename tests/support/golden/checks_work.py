"""How `troth_attestation` answers the golden vectors of the tests of work. Next: loader.py."""

from typing import Any

import numpy as np

from troth_attestation import selection
from troth_coordinator.rules.config import DemoSection

Given = dict[str, Any]


def tile_of(entries: list[list[int]]) -> Any:
    """Return the tile, fp32 [1, 4096], that a list of indices and bit patterns spells."""
    bits = np.zeros((1, 4096), np.uint32)
    for index, pattern in entries:
        bits[0, index] = pattern
    return bits.view(np.float32)


def entries_of(tile: Any) -> list[list[int]]:
    """Return the indices and bit patterns of all entries that are not +0."""
    bits = tile.view(np.uint32)[0]
    return [[int(index), int(bits[index])] for index in np.flatnonzero(bits)]


def py_presence(given: Given) -> Any:
    demo = DemoSection(
        k=given["k"], alpha_micro=given["alpha_micro"], beta_micro=given["beta_micro"]
    )
    before, u = (selection.flush(tile_of(given[name])) for name in ("before", "after"))
    without = selection.decayed(selection.after_included(before, demo), demo)
    top = selection.top_k(u, demo.k)
    (sent,) = selection.is_sent(u, without, given["floor_log2"])
    return {
        "without": entries_of(without),
        "is_sent": bool(sent),
        "indices": top.indices[0].tolist(),
        "negative": top.negative[0].tolist(),
        "next": entries_of(selection.after_included(u, demo)),
    }


CHECKS = {check.__name__: check for check in (py_presence,)}
