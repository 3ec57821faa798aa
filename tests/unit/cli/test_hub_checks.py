"""The doctor asks hubs for what they are there for: a payload of a round that has closed."""

from dataclasses import replace

import pytest
from support import blobs
from support.headers import HEADER, SEED
from support.views import BALLOT, network, round_view, run_view

from troth_attestation import header as headers
from troth_cli.workflows.checks import Level
from troth_cli.workflows.doctor_run import Membership, check_hubs
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.http import http_transport
from troth_coordinator.rules.config import RunConfig

ROUND = 205
PAYLOAD, DATA = blobs.payload(round_=ROUND, leaves=40)
SIGNED = replace(HEADER, payload_root=PAYLOAD.key, payload_bytes=len(DATA))
KEY = headers.header_hash(SIGNED)
AWAY = "http://127.0.0.1:9"


class Chain:
    """A chain of one closed round, which includes trainer 0."""

    program_id = "program"

    def __init__(self, included=1):
        ballots = {0: replace(BALLOT, header_hash=KEY)}
        self.rpc, self.round = self, round_view(ballots, round=ROUND, included=included)

    async def genesis_hash(self):
        return bytes(32)

    async def read_rounds(self, _run, rounds):
        return [self.round if at == ROUND else None for at in rounds]


@pytest.fixture
async def hub():
    async with http_transport("127.0.0.1", 0) as one:
        signature = headers.sign(SIGNED, SEED)
        one.hold(BlobId(ROUND, BlobKind.HEADER, KEY), headers.encode(SIGNED) + signature)
        one.hold(PAYLOAD, DATA)
        one.release(ROUND)
        yield one


def asking(*hubs, named=(), included=1):
    config = RunConfig()
    section = config.network.model_copy(update={"hubs": tuple(hubs)})
    config = config.model_copy(update={"network": section})
    view = network(run=run_view(round=ROUND + 2))
    return Membership(Chain(included), view, None, config, None, named)


async def test_a_hub_that_sends_is_fine_and_its_speed_is_said(hub):
    found = await check_hubs(asking(hub.endpoint))
    assert found.level is Level.OK
    assert found.found.startswith("1 of 1 hubs, ")
    assert found.found.endswith(" MB/s the slowest")


async def test_a_hub_that_is_away_or_lacks_the_round_is_named_with_its_fault(hub):
    async with http_transport("127.0.0.1", 0) as empty:
        found = await check_hubs(asking(hub.endpoint, AWAY, named=(empty.endpoint, AWAY)))
    assert found.level is Level.WARNING
    assert found.values == {"hubs": 3, "silent": 2}
    assert f"{AWAY} to accept a connection" in found.found
    assert f"{empty.endpoint} to have it" in found.found
    assert "--hub" in found.advice


async def test_without_a_hub_or_a_payload_nothing_is_tested(hub):
    assert "no hub" in (await check_hubs(asking())).found
    assert "no closed round" in (await check_hubs(asking(hub.endpoint, included=0))).found
