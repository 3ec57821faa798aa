"""A participant announces an address that no resolver can take.

An endpoint on chain is 96 bytes of somebody else's choice. An address that cannot be asked must
cost one try, like a holder that is switched off. Otherwise one join could end every honest process
at once. Threat T59.
"""

import pytest
from support.blobs import payload

from troth_client.transport.errors import FetchError
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_transport

ENDPOINTS = [
    "http://a..b",
    "http://.",
    "http://" + "a" * 64,
    "http://" + "a" * 70 + ".b",
    "http://xn--a",
    "http://127.0.0.1:99999",
    "http://127.0.0.1:0",
    "http://a:b",
    "http://[::1",
    "http://%00",
    "http://*",
    "http://user@127.0.0.1:1",
    "http://127.0.0.1:1/path?query",
    "file:///etc/passwd",
    "ftp://127.0.0.1",
    "-",
    "",
]
SHORT = Patience(grace_seconds=1.0, hedge_seconds=0.2)


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_an_endpoint_that_cannot_be_asked_costs_a_try(endpoint):
    blob, data = payload()
    async with http_transport("127.0.0.1", 0, patience=SHORT) as ours:
        with pytest.raises(FetchError) as caught:
            await ours.fetch(blob, [endpoint], len(data), bytes)
        assert [holder for holder, _ in caught.value.failures] == [endpoint]


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_an_honest_holder_behind_it_is_enough(endpoint):
    blob, data = payload()
    async with (
        http_transport("127.0.0.1", 0, patience=SHORT) as ours,
        http_transport("127.0.0.1", 0, patience=SHORT) as honest,
    ):
        honest.hold(blob, data)
        honest.release(blob.round)
        assert await ours.fetch(blob, [endpoint, honest.endpoint], len(data), bytes) == data


@pytest.mark.parametrize("endpoint", ENDPOINTS)
async def test_a_push_to_it_fails_and_the_others_still_get_theirs(endpoint):
    blob, data = payload()
    async with (
        http_transport("127.0.0.1", 0, patience=SHORT) as ours,
        http_transport("127.0.0.1", 0, patience=SHORT) as honest,
    ):
        ours.hold(blob, data)
        ours.release(blob.round)
        honest.expect(blob, len(data), bytes)
        results = await ours.push(blob.round, [endpoint, honest.endpoint])
        taken = {result.holder for result in results if result.error is None}
        assert taken == {honest.endpoint}
