"""Members of a run to fetch from: which of their addresses are connected to."""

import pytest
from solders.hash import Hash
from solders.pubkey import Pubkey
from support import blobs

from troth_cli.workflows.members import Members
from troth_client.transport.errors import FetchError
from troth_client.transport.http import http_transport
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.clusters import PUBLIC

BLOB, DATA = blobs.payload()


class PublicRpc:
    """A node of a public cluster, as far as a transport asks."""

    async def genesis_hash(self):
        return bytes(Hash.from_string(next(iter(PUBLIC))))


def members(**options):
    return Members(CoordinatorClient(PublicRpc()), Pubkey.default(), 1.0, **options)


async def fetch_from(holder, asking):
    async with await asking.transport() as transport:
        return await transport.fetch(BLOB, [holder.endpoint], len(DATA), bytes)


async def test_private_addresses_are_asked_where_the_user_allows_it():
    async with http_transport("127.0.0.1", 0) as holder:
        holder.hold(BLOB, DATA)
        holder.release(BLOB.round)
        with pytest.raises(FetchError, match="no public address"):
            await fetch_from(holder, members())
        assert await fetch_from(holder, members(allow_private=True)) == DATA
