"""Gathering: our own payload is handed out meanwhile, and an error of our disk is an error."""

import asyncio
from dataclasses import replace

import pytest
from support.audit_driver import AuditDriver
from support.views import network, round_view, run_view

from troth_client.compression.codec import payload_root
from troth_client.state.records import Published, RoundPlan
from troth_client.steps.gather import gather
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.http import http_transport
from troth_coordinator.rules import progress
from troth_coordinator.rules.ids import NONE, RoundIndex
from troth_coordinator.rules.phase import Phase

ROUND = RoundIndex(9)
PAYLOAD = b"our payload"
OURS = BlobId(ROUND, BlobKind.PAYLOAD, payload_root(PAYLOAD))
PLAN = RoundPlan(ROUND, 0, 0, True, True, True, (), NONE)
RUN = run_view(round=ROUND, phase=Phase.ATTEST, phase_start_slot=1_000, phase_end_slot=1_100)
ROUND_VIEW = round_view(round=ROUND, committed=0)


class Alone(AuditDriver):
    """A member whose round has no other submission; slots pass while it waits for one."""

    def _advanced(self):
        super()._advanced()
        self.node.view = replace(self.node.view, slot=self.node.view.slot + 1)


@pytest.fixture
async def driver(tmp_path):
    one = Alone(tmp_path / "member")
    one.node.view = network(slot=1_001, run=RUN)
    one.holders = http_transport("127.0.0.1", 0, folder=tmp_path / "blobs")
    async with one.holders:
        one.holders.hold(OURS, PAYLOAD)
        one.holders.release(ROUND)
        yield one
    await one.close()


@pytest.fixture
async def other():
    """Another member, which takes our payload."""
    async with http_transport("127.0.0.1", 0) as transport:
        transport.expect(OURS, len(PAYLOAD), bytes)
        yield transport


async def gathered(driver, other):
    published = Published(ROUND_VIEW, (other.endpoint,), is_ours=True)
    async with asyncio.timeout(60):
        return await gather(driver.chain, driver.submissions, PLAN, published)


async def test_our_payload_is_handed_out_long_before_the_deadline(driver, other):
    assert await gathered(driver, other) == {}
    assert len(driver.named("published")) == 1
    assert driver.node.view.slot < progress.attest_deadline(RUN)


async def test_a_payload_that_our_disk_does_not_give_back_ends_the_round(driver, other, tmp_path):
    """Nobody looked at the offer: it began anew at each look, and failed, until the deadline."""
    file = tmp_path / "blobs/served" / str(ROUND) / OURS.address.replace("/", "-")
    file.unlink()
    file.mkdir()
    with pytest.raises(IsADirectoryError):
        await gathered(driver, other)
