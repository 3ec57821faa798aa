"""A long run stays small: what a participant keeps follows from the windows of the protocol.

The benchmark thousand_rounds.py plays a thousand rounds; this plays four times the longest window.
"""

from dataclasses import replace
from functools import partial

import pytest
import thousand_rounds
from support.runs import AUDITED, settings_of

from troth_client.data.shards import TokenData
from troth_simulation.in_process import InProcessRun

SHORT = {"checkpoint_every": 2, "keep_rounds": 4, "ring": 6}
"""Payloads are kept longest: twelve rounds."""
ROUNDS = 52
SAMPLE = thousand_rounds.Sample(0, 0.0, 0, 0, 0, {"weights": 1_000}, {}, {"Roots.known": 40})


def test_growth_is_told_from_a_standstill():
    late = replace(SAMPLE, disk={"weights": 1_100, "events": 10**6}, entries={"Roots.known": 80})
    assert list(thousand_rounds.growth([SAMPLE] * 8, 1.2)) == []
    found = list(thousand_rounds.growth([*[SAMPLE] * 6, late, late], 1.2))
    assert found == ["entries Roots.known: 40, later 80"]


@pytest.mark.long(reason="fifty-two rounds of four members, audited, with a hub")
async def test_disk_objects_and_entries_stand_still_after_the_longest_window(data, tmp_path):
    folder, manifest = data
    settings = settings_of(manifest, ROUNDS, **{**AUDITED, "audit_cap": 4, **SHORT})
    create = partial(InProcessRun.create, settings, TokenData(folder, manifest), tmp_path / "run")
    samples = await thousand_rounds.play(create, 4, 2, lambda _sample: None)
    assert len(samples) == ROUNDS // 2
    late = samples[len(samples) // 2 :]
    kinds = ("weights", "residual", "peer", "openings", "verdicts", "blobs", "checkpoints", "hub")
    for kind in kinds:
        assert any(one.disk.get(kind) for one in late), f"{kind} lie in the folders"
    assert late[-1].entries["AuditTracker._rounds"] > 0
    assert list(thousand_rounds.growth(samples, 1.2)) == []
