"""Which headers an observer still asks for, and what it keeps of them. Threat T125."""

from dataclasses import replace

import pytest
from support.headers import HEADER, SEED
from support.holders import Hostile, ok, says
from support.stores import aim_at
from support.views import BALLOT, entry, network, roster, round_view

from troth_attestation import header as headers
from troth_cli.observe.fold import participants_seen
from troth_cli.observe.headers import MOST_WANTED, HeaderReader
from troth_cli.observe.losses import SIGNED_BYTES
from troth_cli.observe.round_book import RoundBook
from troth_client.transport.exchange import Patience
from troth_client.transport.http import http_reader
from troth_coordinator.rules.config import RunConfig

NAT = 10**6
ME = 6
QUICK = Patience(grace_seconds=1.5, hedge_seconds=0.1)
NO_CONFIG = bytes(32)


def round_of(number, loss=3 * NAT):
    """A closed round with one payload, and its signed header."""
    made = replace(HEADER, mean_loss=loss, index=ME, round=number)
    ballots = {ME: replace(BALLOT, header_hash=headers.header_hash(made))}
    signed = headers.encode(made) + headers.sign(made, SEED)
    return round_view(ballots, round=number, run=made.run, included=1 << ME), signed


def reader_of(transport):
    return HeaderReader(transport, RoundBook(8), (), lambda: 0.0)


async def test_rounds_that_close_faster_than_holders_answer_take_no_memory():
    async with http_reader(QUICK) as transport:
        reader = reader_of(transport)
        for number in range(10 * MOST_WANTED):
            reader.want([round_of(number)[0]])
        assert reader.num_wanted == MOST_WANTED
        asked = []
        await reader.read(NO_CONFIG, lambda: asked.append(reader.num_wanted))
    assert len(asked) == MOST_WANTED, "the newest ones were asked for, each once"


@pytest.mark.parametrize("loss", [2**63 - 1, -(2**63), -1, 1_000 * NAT + 1])
async def test_a_loss_that_no_model_has_is_not_the_last_one_of_its_trainer(loss):
    sound, signed = round_of(1)
    lie, lying = round_of(2, loss)

    async def behave(holder, writer, head):
        told = lying if lie.ballots[ME].header_hash.hex() in head else signed
        await says(ok(SIGNED_BYTES), told)(holder, writer, head)

    async with Hostile(behave) as holder, http_reader(QUICK) as transport:
        reader = reader_of(transport)
        reader.use_holders({ME: holder.endpoint})
        reader.want([sound, lie])
        await reader.read(NO_CONFIG, lambda: None)
    assert reader.last_losses == {ME: (1, 3 * NAT)}
    assert reader.num_wanted == 0


def object_of(data):
    """The answer of an object store that has these bytes."""
    seen = 'ETag: "x"\r\nLast-Modified: Mon, 23 Nov 2026 00:00:00 GMT\r\nConnection: close\r\n'
    return says(ok(len(data), seen), data)


async def test_a_store_of_the_config_is_asked_without_the_users_credentials(monkeypatch):
    """The author of a config would else read in the store's log the names of watchers. T118."""
    values = {"data": {"manifest_hash": "11" * 32}, "network": {"stores": ["s3://theirs/run"]}}
    config = RunConfig.model_validate(values)
    account, signed = round_of(1)
    async with (
        Hostile(object_of(config.canonical_json())) as member,
        Hostile(object_of(signed)) as store,
        http_reader(QUICK) as transport,
    ):
        aim_at(monkeypatch, store.endpoint)
        reader = HeaderReader(transport, RoundBook(8), [member.endpoint], lambda: 0.0)
        reader.want([account])
        await reader.read(config.config_hash(), lambda: None)
    assert reader.last_losses == {ME: (1, 3 * NAT)}
    assert store.heads
    assert not any("authorization:" in head.lower() for head in store.heads)


@pytest.mark.parametrize(("joined", "last"), [(4, 5), (5, 5), (6, None), (2**64 - 1, 5)])
def test_who_takes_an_index_again_does_not_take_its_last_loss(joined, last):
    view = network(entries=roster(replace(entry(1), joined_round=joined)))
    (seen,) = participants_seen(view, {}, {0: (5, 3 * NAT)})
    assert seen.last_loss_round == last
    assert (seen.last_loss_micro is None) == (last is None)
