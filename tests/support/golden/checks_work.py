"""How `troth_attestation` answers the golden vectors of the tests of work. Next: loader.py."""

from typing import Any

import numpy as np

from troth_attestation import agreement, selection, work
from troth_attestation.measure import JudgeRule, Own
from troth_attestation.openings import Openings
from troth_attestation.signs import Signs
from troth_coordinator.rules.config import DemoSection, JudgeSection

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


def py_audit_work(given: Given) -> Any:
    rule = JudgeRule(DemoSection(k=2), JudgeSection())
    g, u, before = (
        np.concatenate([tile_of(tile[part]) for tile in given["tiles"]]) for part in range(3)
    )
    again = None
    if given["second"] is not None:
        again = np.concatenate([tile_of(tile) for tile in given["second"]]).reshape(-1, 64, 64)
    without = selection.decayed(selection.after_included(before, rule.demo), rule.demo)
    sent = selection.is_sent(u, without, rule.judge.sent_floor_log2)
    signs = selection.top_k(u, rule.demo.k).signs(sent)
    shown = Openings(tuple(range(len(u))), u, before)
    own = Own(g.reshape(-1, 64, 64), lambda: again)
    found = work.judge_openings(shown, signs, own, rule)
    answer: Given = {"kind": found.kind.name, "reason": found.reason.name}
    for name in ("median_error", "residual_ratio"):
        if getattr(found, name) is not None:
            answer[name] = round(getattr(found, name) * 10**6)
    return answer


def py_agreement(given: Given) -> Any:
    cut = agreement.groups(given["tensor_tiles"])
    count = len(given["tiles"])
    gradient = np.zeros((count, 4096), np.float32)
    negative = np.zeros((count, 2), bool)
    for tile, (_, votes) in enumerate(given["tiles"]):
        negative[tile], gradient[tile, :2] = zip(*votes, strict=True)
    counted = np.array([bool(flag) for flag, _ in given["tiles"]])
    signs = Signs(counted, np.tile(np.array([0, 1], np.int16), (count, 1)), negative)
    short = [tuple(tile for tile in group if tile < count) for group in cut]
    least = agreement.least_agreement(short, signs, gradient.reshape(-1, 64, 64), counted)
    rounded = None if least is None else round(least * 10**6)
    return {"sizes": [len(group) for group in cut], "least": rounded}


CHECKS = {check.__name__: check for check in (py_presence, py_audit_work, py_agreement)}
