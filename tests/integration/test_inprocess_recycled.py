"""A run whose members compute with compiled kernels, and whose arrays are used again when free."""

import numpy as np
import pytest
from support.runs import AUDITED, FIVE, assert_finished, events_of, member, start_members

from troth_client.compression import known_answer
from troth_client.runtime import recycled
from troth_client.state.residual_archive import ResidualArchive


@pytest.fixture
def reused(monkeypatch):
    """Spoil memory as soon as it is free; return a list that grows with each array on it."""
    kept, taken, found = recycled._keep, recycled._taken, []
    put_ = ResidualArchive.put

    def spoil(memory):
        memory.fill(np.nan)
        kept(memory)

    def put(archive, entry):
        put_(archive, entry)
        archive._recent.clear()  # as --past-mib 0: u lies on disk alone, and in the momentum

    def take(size):
        is_spare = any(memory.size == size for memory in recycled._free.values())
        found.extend([size] * is_spare)
        return taken(size)

    monkeypatch.setattr(known_answer, "COMPILED_FROM_TILES", 0)
    monkeypatch.setattr(recycled, "LARGE_BYTES", 0)
    monkeypatch.setattr(recycled, "_keep", spoil)
    monkeypatch.setattr(ResidualArchive, "put", put)
    monkeypatch.setattr(recycled, "_taken", take)
    return found


@pytest.mark.long(reason="a run with audits, and kernels that numba loads")
async def test_every_audit_finds_u_in_memory_that_later_rounds_use_again(run_factory, reused):
    run = await run_factory.create(8, **AUDITED | {"openings_slots": 200, "case_slots": 10})
    await start_members(run, FIVE)
    await run.finish()
    view = await assert_finished(run)
    size = 4096 * member(run, FIVE[0]).here.state.replica.layout.num_tiles
    assert reused.count(size) > 5
    judged = [event for name in FIVE for event in events_of(run, name, "judged")]
    assert len(judged) >= 3 * 2 * 4
    assert {event["verdict"] for event in judged} == {"OK"}
    assert sum(entry.strikes for entry in view.entries) == 0
