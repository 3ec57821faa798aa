"""Cheaper work than the assigned one: coarse numbers, low rank, a copied sketch.

Some of it is refused, some is accepted on purpose, and the page says which. The model is small and
real; the judge is the real one.
"""

import numpy as np
import torch
from support.attacks.forging import Forger, nothing
from support.trainers import CONFIG, ORDER, TOKENS, Trainer, honest_history, weights

from troth_attestation.measure import Own
from troth_attestation.panel import Panel, Report
from troth_attestation.quorum import AuditOutcome, CaseOutcome, case_outcome
from troth_attestation.verdict import VerdictKind
from troth_client.audit.judgement import judge_work
from troth_client.audit.recompute import recompute
from troth_client.compression.dct import dct2
from troth_client.compression.tiles import TileLayout
from troth_client.model.device import CPU
from troth_client.model.weights import build
from troth_client.train.step import gradient

OK, MISMATCH, _, INCONCLUSIVE = VerdictKind
IDS = ORDER.sequences(0, 8)
BATCH = TOKENS.sequences(IDS)


def judged(made):
    """The verdict of a witness in fp32 on this D(g), behind an honest momentum."""
    evidence = honest_history(Trainer(), 2).round(2, torch.from_numpy(made), IDS)
    own = recompute(CONFIG, weights(), BATCH)
    return judge_work(evidence, Own(own, lambda: own), CONFIG)


def test_a_gradient_of_fp8_is_not_accepted():
    """It rounds weights to eight bits, as fast hardware can, and hopes that nobody sees it.

    Three bits of mantissa move each weight by up to 6 %. Such work is unpaid at best; a run that
    wants it must calibrate its bounds with it. Threat T88.
    """
    rounded = {}
    for name, values in weights().items():
        largest = max(float(np.abs(values).max()), 1e-30)
        scaled = torch.from_numpy(values) * (448 / largest)
        rounded[name] = (scaled.to(torch.float8_e4m3fn).float() * (largest / 448)).numpy()
    found = judged(recompute(CONFIG, rounded, BATCH))
    assert found.kind != OK
    assert found.median_error > CONFIG.judge.ok_bound_micro / 10**6


def low_rank(tensor, error):
    """The matrix of the lowest rank that lies within this relative error, and that rank."""
    u, s, v = np.linalg.svd(tensor, full_matrices=False)
    behind = np.sqrt(np.cumsum((s**2)[::-1])[::-1])
    rank = int(np.argmax(np.append(behind, 0.0) <= error * behind[0]))
    return (u[:, :rank] * s[:rank]) @ v[:rank], rank


def test_a_gradient_of_low_rank_within_the_tolerance_is_accepted():
    """It computes weight gradients by a range finder, of a third of their rank where it can.

    NOT caught, on purpose: the judge measures the result, not the way. It saves at most the third
    of the arithmetic that weight gradients are; `troth run economics` prices that. Threat T89.
    """
    model = build(CONFIG.model, weights(), CPU.torch)
    found = gradient(model, BATCH, 4, CONFIG.train.clip_micro)
    tensors, ranks = {}, []
    for name, tensor in found.tensors.items():
        values = tensor.numpy()
        if values.ndim == 2:
            values, rank = low_rank(values, 0.01)
            ranks.append(rank / min(tensor.shape))
        tensors[name] = torch.from_numpy(np.ascontiguousarray(values, np.float32))
    layout = TileLayout.from_shapes({name: tuple(t.shape) for name, t in tensors.items()})
    verdict = judged(dct2(layout.to_tiles(tensors)).numpy())
    assert verdict.kind == OK, verdict.explain()
    assert 0 < np.mean(ranks) < 1


def test_a_copied_sketch_is_paid_and_decides_nothing_alone():
    """Two extension seats repeat a verdict and a sketch that the first three have shown.

    NOT caught: they are paid without computing. But they cannot turn an audit. With two honest ok
    they clear what honest seats clear; with a liar they accuse at most, and the jury, whose members
    are others, decides. Its acquittal fines those that repeated the lie. Threat T21.
    """
    sketch = (1000,) * 64
    honest, copied = Report(True, OK, sketch), Report(True, OK, sketch)
    silent = Report()
    seats = [honest, honest, silent, copied, copied]
    assert Panel(seats).outcome(5) == AuditOutcome.CLEARED
    assert Panel(seats).paid_seats() == {0, 1, 3, 4}
    lie = Report(True, MISMATCH, sketch)
    accused = [honest, honest, lie, lie, lie]
    assert Panel(accused).outcome(5) == AuditOutcome.ACCUSED
    assert case_outcome([OK] * 5 + [MISMATCH] * 2, is_work=True) == CaseOutcome.ACQUITTED
    assert set(Panel(accused).faults(CaseOutcome.ACQUITTED)) == {2, 3, 4}


def test_rounding_that_is_honest_stays_far_below_the_bound():
    """The same story with the numerics that are honest: bf16 has seven bits and is accepted.

    Here the rounding of one computation, u, is bounded for comparison. Threat T88.
    """
    forger = Forger(seeds=1)
    forger.play(nothing)

    def rounded(now):
        coarse = torch.from_numpy(now.gradient).bfloat16().float().numpy()
        now.u[:] = now.without + coarse

    _, ((_, found),) = forger.play(rounded)
    assert found.kind == OK
    assert found.median_error < CONFIG.judge.ok_bound_micro / 10**6 / 3
