"""A small trainer in numpy with synthetic gradients: what the tests of the judge audit.

Gradients have a slowly turning common part and noise, so that momentum predicts much of them: a
free-rider's payload looks plausible, as in real training.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from troth_attestation import measure, openings, sampling, selection, state, work
from troth_attestation.signs import Signs
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import NONE

CONFIG = RunConfig()
RULE = measure.JudgeRule(CONFIG.demo, CONFIG.judge)
SIGMA = bytes(range(32))
RUN = b"r" * 32
TARGET = 5
NUM_TILES = 45
NUM_DRAWN = 32
"""Fewer than the default, so that an audit of the small model does not open all of it."""
ROUND = 9


def gradients(seed: int, num_rounds: int, parts: int = 8) -> Any:
    """Return fp32 [rounds, parts, tiles, 4096]: the mean over `parts` is the gradient."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(NUM_TILES, 4096)) * rng.lognormal(size=(NUM_TILES, 1))
    out = np.empty((num_rounds, parts, NUM_TILES, 4096), np.float32)
    for round_ in range(num_rounds):
        common += 0.3 * rng.normal(size=common.shape) * np.abs(common).mean()
        noise = rng.normal(size=out.shape[1:]) * np.linalg.norm(common, axis=1)[:, None] / 64
        out[round_] = common + 2 * noise
    return out


def decayed(u: Any) -> Any:
    """Return what u of the round before leaves, without a gradient."""
    return selection.decayed(selection.after_included(u, CONFIG.demo), CONFIG.demo)


def chosen(u_before: Any, u_after: Any) -> Signs:
    """Return the payload of honest work; `u_before` None is the zero residual."""
    without = np.zeros_like(u_after) if u_before is None else decayed(u_before)
    sent = selection.is_sent(u_after, without, CONFIG.judge.sent_floor_log2)
    return selection.top_k(u_after, CONFIG.demo.k).signs(sent)


@dataclass(frozen=True)
class Work:
    """One sampled payload with all that the two sides know."""

    sampled: openings.Sampled
    after: openings.Residual
    before: openings.Residual | None
    signs: Signs
    own: Any

    @property
    def data(self) -> bytes:
        return openings.encode(self.sampled, self.after, self.before)

    def judged(self, **changes: Any) -> Any:
        """Judge with the honest arguments, or others by name."""
        data = changes.pop("data", self.data)
        root = changes.pop("recorded_root", openings.openings_root(data) if data else bytes(32))
        given = {"sampled": self.sampled, "signs": self.signs, "gradient": self.own} | changes
        own = measure.Own(given["gradient"], given.get("again", lambda: self.own))
        return work.judge(
            data, given["sampled"], root, given["signs"], own, given.get("rule", RULE)
        )


def committed(u: Any) -> openings.Residual:
    """Return u as tiles with its tree."""
    tiles = np.ascontiguousarray(u, np.float32).reshape(-1, 64, 64)
    return openings.Residual(tiles, state.residual_tree(tiles))


def payload_of(
    u_before: Any, u_after: Any, own: Any, sigma: bytes = SIGMA, count: int = NUM_DRAWN
) -> Work:
    """Return the audit of a payload that shows `u_after`; `u_before` None is the zero residual."""
    u_after = selection.flush(np.asarray(u_after, np.float32))
    num_tiles = len(u_after)
    after = committed(u_after)
    before = None if u_before is None else committed(u_before)
    sampled = openings.Sampled(
        run=RUN,
        round=ROUND,
        index=TARGET,
        previous_included=NONE if before is None else ROUND - 1,
        num_tiles=num_tiles,
        tiles=sampling.drawn_tiles(sigma, TARGET, num_tiles, count),
        root_after=after.tree.root,
        root_before=before.tree.root if before else bytes(32),
    )
    own_tiles = np.ascontiguousarray(own, np.float32).reshape(num_tiles, 64, 64)
    return Work(sampled, after, before, chosen(u_before, u_after), own_tiles)


def trained(seed: int, cheat: Any = None, num_rounds: int = 8) -> Work:
    """Train honestly, then let `cheat(parts, m, rng)` make the last D(g) instead of the mean."""
    parts = gradients(seed, num_rounds)
    u = None
    for round_ in range(num_rounds - 1):
        g = parts[round_].mean(axis=0)
        u = g if u is None else decayed(u) + g
    own = parts[-1].mean(axis=0)
    shown = own if cheat is None else cheat(parts[-1], parts[-2], np.random.default_rng(seed))
    after = decayed(u) + shown.astype(np.float32)
    return payload_of(u, after, own)


def changed(made: Work, **fields: Any) -> Any:
    """Return the sampled record of an audit with other fields."""
    return replace(made.sampled, **fields)
