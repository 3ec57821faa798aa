"""A trainer that forges single tiles, round after round, before the real judge.

Owns: its residual, gradients of a synthetic model, audits under many seeds. Nothing but the
arithmetic of a round is played: no chain, no model. Next: test_forged_tiles.py.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from support.judged_work import CONFIG, Work, decayed, payload_of
from troth_attestation import selection
from troth_attestation.verdict import Verdict, VerdictKind

NUM_TILES = 160
DRAWN = CONFIG.judge.openings_tiles
Forge = Callable[["Round"], None]


@dataclass
class Round:
    """One round of the forger: it may write into u, [tiles, 4096], before it signs."""

    number: int
    gradient: Any
    without: Any
    u: Any

    @property
    def norms(self) -> Any:
        """||g|| of every tile."""
        return np.linalg.norm(self.gradient, axis=1)

    def forge(self, tiles: Any, size: float, seed: int = 0) -> None:
        """Write a direction of its choice over these tiles, `size` times their gradient."""
        rng = np.random.default_rng(seed)
        wanted = rng.normal(size=(len(tiles), 4096))
        scale = size * self.norms[tiles] / np.linalg.norm(wanted, axis=1)
        self.u[tiles] = wanted * scale[:, None]


@dataclass
class Forger:
    """A trainer whose payloads are all included, and audited under so many seeds each."""

    seeds: int = 2
    seed: int = 1
    before: Any = None
    turn: int = 0
    verdicts: Counter[VerdictKind] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        rng = self.rng = np.random.default_rng(self.seed)
        self.sizes = rng.lognormal(size=(NUM_TILES, 1)).astype(np.float32)

    def gradient(self) -> Any:
        """A gradient of independent entries, fp32 [tiles, 4096]."""
        return self.sizes * self.rng.normal(size=(NUM_TILES, 4096)).astype(np.float32)

    def play(self, forge: Forge, gradient: Any = None) -> tuple[Round, list[tuple[Work, Verdict]]]:
        """Play one round; return it with its audits."""
        own = self.gradient() if gradient is None else gradient
        without = np.zeros_like(own) if self.before is None else decayed(self.before)
        now = Round(self.turn, own, without, selection.flush(without + own))
        forge(now)
        now.u = selection.flush(now.u)
        audits = []
        for number in range(self.seeds):
            sigma = sha256(bytes([self.seed, self.turn, number])).digest()
            made = payload_of(self.before, now.u, own, sigma, DRAWN)
            audits.append((made, made.judged()))
            self.verdicts[audits[-1][1].kind] += 1
        self.before, self.turn = now.u, self.turn + 1
        return now, audits


def nothing(_: Round) -> None:
    """Do the assigned work."""
