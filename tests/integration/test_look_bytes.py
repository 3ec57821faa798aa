"""Bytes of a look at a run of 8 and of 64, with accounts as full as they get in a round."""

import hashlib
from random import Random

import httpx
import pytest
from solders.pubkey import Pubkey
from support.chain import GENESIS_ROOT, World
from support.waiting import ANSWER_SECONDS

from troth_coordinator.chain.addresses import RunAddresses
from troth_localnet.rpc import RpcServer, ServerConfig

SECONDS_PER_DAY = 86_400
ROUND_SECONDS = 30
REREADS, WHOLES, AUDITED = 12, 8, 6
"""Looks of a participant in a round of 30 seconds, and reads of audits; counted, see
docs/results.md, and rounded up."""
GIGABYTES = {8: 0.5, 64: 2.0}
"""The promised most of a day."""


async def full_round(num: int) -> tuple[World, RunAddresses]:
    """A run in its second round, of which all have committed; the first has all attestations."""
    world = World()
    running = await world.start(num, capacity=num, audit_cap=8)
    draw = Random(0)
    for number, (_owner, session) in enumerate(running.peers):
        vote = running.vote(number, 0, GENESIS_ROOT)
        await session.commit_payload(0, hashlib.sha256(bytes([number])).digest(), vote)
    await running.crank.advance_phase(0)
    everybody = (1 << num) - 1
    for _owner, session in running.peers:
        held = bytes(draw.randrange(1, 256) for _ in range(num))
        await session.attest(0, everybody, held.ljust(64, b"\0"))
    view = await world.client.snapshot(running.at.run)
    await running.crank.close_round(view.run, GENESIS_ROOT)
    for number, (_owner, session) in enumerate(running.peers):
        vote = running.vote(number, 1, draw.randbytes(32))
        await session.commit_payload(1, draw.randbytes(32), vote)
    return world, running.at


async def size_of(url: str, addresses: list[Pubkey], encoding: str) -> int:
    """Bytes of one look, those of the request and the headers included."""
    params = [[str(one) for one in addresses], {"encoding": encoding}]
    body = {"jsonrpc": "2.0", "id": 1, "method": "getMultipleAccounts", "params": params}
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as http:
        return len((await http.post(url, json=body)).content) + 500


@pytest.mark.parametrize("num", [8, 64])
async def test_a_day_of_looks_stays_within_what_is_promised(num):
    world, at = await full_round(num)
    looks = {
        "reread": [at.run, at.round(1)],
        "whole": [at.run, at.roster, at.round(1), at.round(0)],
    }
    server = RpcServer(world.chain, ServerConfig(slot_milliseconds=None))
    await server.start()
    try:
        sizes = {
            (name, encoding): await size_of(server.rpc_url, addresses, encoding)
            for name, addresses in looks.items()
            for encoding in ("base64", "base64+zstd")
        }
    finally:
        await server.stop()
    reread, whole = sizes["reread", "base64+zstd"], sizes["whole", "base64+zstd"]
    num_bytes = (REREADS + AUDITED) * reread + WHOLES * whole
    gigabytes = num_bytes / ROUND_SECONDS * SECONDS_PER_DAY / 1e9
    assert gigabytes < GIGABYTES[num] * 0.75, "sends and pushes come on top"
    assert whole < sizes["whole", "base64"]
