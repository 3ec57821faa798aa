"""Several RPC nodes as one: who is asked, how soon, how often, and what is reported. Fake clock."""

import asyncio
from random import Random

import pytest
from solders.pubkey import Pubkey
from solders.signature import Signature
from support.fake_time import now, run
from support.rpc_nodes import (
    FOREIGN,
    Reports,
    Scripted,
    Weather,
    behind,
    foreign,
    frozen,
    garbage,
    lacking,
    limited,
    nothing,
    refused,
    short,
    unavailable,
)

from troth_coordinator.chain.errors import RpcError, RpcLimitedError, RpcRefusedError
from troth_coordinator.chain.failover import FailoverRpc
from troth_coordinator.chain.rpc import Account

KEY = Pubkey(b"k" * 32)
POLL = 0.4
FAILURES = [refused, unavailable, limited, garbage]
BAD_ANSWERS = {"null": nothing, "foreign": foreign, "short": short, "lagging": behind(20)}


class Bench:
    """A FailoverRpc over so many scripted nodes called a, b, c, ... on the fake clock."""

    def __init__(self, num_nodes: int) -> None:
        names = "abcdefgh"[:num_nodes]
        self.scripted = [Scripted(now) for _ in names]
        self.nodes = [Weather(n, one) for n, one in zip(names, self.scripted, strict=True)]
        self.reports = Reports(clock=now)
        self.rpc = FailoverRpc(
            {node.name: node for node in self.nodes},
            report=self.reports,
            clock=now,
            random=Random(1),
        )

    async def poll(self, seconds: float) -> list[float]:
        """Read an account as a participant does; return when that failed."""
        failed, end = [], now() + seconds
        while now() < end:
            try:
                await self.rpc.get_accounts([KEY])
            except RpcError:
                failed.append(now())
            await asyncio.sleep(POLL)
        return failed

    def asked(self, index: int) -> int:
        return self.nodes[index].calls.count("get_accounts")


def on_bench(num_nodes, work):
    async def test():
        bench = Bench(num_nodes)
        async with bench.rpc:
            return await work(bench)

    return run(test())


@pytest.mark.parametrize("failure", FAILURES)
def test_a_node_that_fails_is_passed_over_at_once_and_reported(failure):
    async def work(bench):
        await bench.poll(2)
        bench.nodes[0].raises = failure
        began = now()
        assert await bench.poll(10) == [], "the other node answers every call"
        return began, bench.reports

    began, reports = on_bench(2, work)
    assert reports.troubles[0].startswith("trouble a: ")
    assert reports.at[0] - began <= 2


def test_a_silent_node_costs_one_call_less_than_five_seconds():
    async def work(bench):
        for node in bench.nodes[:-1]:
            node.silent = True
        began = now()
        await bench.rpc.get_accounts([KEY])
        return now() - began, bench.reports.troubles

    for num_nodes in (2, 3, 8):
        seconds, troubles = on_bench(num_nodes, work)
        assert seconds <= 5
        assert "trouble a: no answer for" in troubles[0]


def test_silence_of_the_only_node_is_reported_within_two_seconds():
    async def work(bench):
        bench.nodes[0].silent = True
        began = now()
        asking = asyncio.ensure_future(bench.rpc.get_accounts([KEY]))
        await asyncio.sleep(2)
        asking.cancel()
        return bench.reports.at[0] - began, bench.reports.told

    seconds, told = on_bench(1, work)
    assert seconds <= 2
    assert told == ["trouble a: no answer for 1.5 s"]


@pytest.mark.parametrize("failure", [refused, unavailable, garbage])
def test_the_only_node_is_asked_about_once_a_second_while_it_is_away(failure):
    async def work(bench):
        await bench.poll(2)
        bench.nodes[0].raises, before = failure, bench.asked(0)
        failed = await bench.poll(65)
        asked = bench.asked(0) - before
        bench.nodes[0].heal()
        healed = now()
        failed_after = await bench.poll(3)
        return failed, asked, healed, failed_after, bench.reports

    failed, asked, healed, failed_after, reports = on_bench(1, work)
    assert len(failed) > 100, "each call fails at once"
    assert 65 <= asked <= 115
    assert all(at - healed < 1 for at in failed_after)
    assert reports.told[-1] == "recovered a"
    assert reports.at[-1] - healed <= 1
    assert len(reports.troubles) == 2, "at the beginning, and after a minute"


def test_one_broken_connection_of_the_only_node_is_no_outage():
    async def work(bench):
        await bench.poll(2)
        left = [1]

        def once(name):
            left[0] -= 1
            if left[0] == 0:
                bench.nodes[0].raises = None
            return refused(name)

        bench.nodes[0].raises = once
        return await bench.poll(5), bench.reports.told

    failed, told = on_bench(1, work)
    assert failed == []
    assert told == []


def test_a_limit_is_kept_also_by_the_only_node():
    async def work(bench):
        await bench.poll(2)
        bench.nodes[0].raises, before = limited, bench.asked(0)
        await bench.poll(20)
        return bench.asked(0) - before

    assert on_bench(1, work) <= 10, "it asked for two seconds between two requests"


@pytest.mark.parametrize(("wanted", "longest"), [(10**9, 31), (None, 9)])
def test_no_node_can_make_us_wait_for_ever(wanted, longest):
    async def work(bench):
        bench.nodes[0].raises = lambda name: RpcLimitedError(name, "HTTP status 429", wanted)
        await bench.poll(1)
        bench.nodes[0].heal()
        return await bench.poll(60), now()

    failed, end = on_bench(1, work)
    assert failed[-1] < end - 60 + longest


def test_a_rest_grows_and_the_node_is_taken_back_when_it_is_over():
    async def work(bench):
        await bench.poll(2)
        bench.nodes[0].raises, before = refused, len(bench.nodes[0].calls)
        await bench.poll(60)
        asked = len(bench.nodes[0].calls) - before
        bench.nodes[0].heal()
        await bench.poll(10)
        first = bench.asked(0)
        await bench.poll(4)
        return asked, bench.asked(0) - first, bench.reports.told[-1]

    asked, num_last, last = on_bench(2, work)
    assert 8 <= asked <= 20
    assert num_last >= 9, "the preferred node is asked again"
    assert last == "recovered a"


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_an_answer_that_cannot_be_right_is_not_taken(kind):
    async def work(bench):
        await bench.poll(2)
        bench.nodes[0].alter = BAD_ANSWERS[kind]
        slot, (account,) = await bench.rpc.get_accounts([KEY])
        return slot, bench.scripted[0].slot, account, bench.asked(1)

    slot, current, account, asked = on_bench(2, work)
    assert slot == current
    assert account.data == b"data"
    assert asked == 1


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("null", None),
        ("foreign", Account(1, FOREIGN, b"data")),
        ("short", Account(1, Pubkey(b"o" * 32), b"dat")),
    ],
)
def test_an_account_is_what_all_nodes_show(kind, shown):
    """Gone, another program's, or cut: nobody is left to contradict it."""

    async def work(bench):
        await bench.poll(2)
        for node in bench.nodes:
            node.alter = BAD_ANSWERS[kind]
        _slot, (account,) = await bench.rpc.get_accounts([KEY])
        return account

    assert on_bench(2, work) == shown


@pytest.mark.parametrize("num_nodes", [1, 2])
def test_accounts_that_are_closed_are_no_trouble(num_nodes):
    """Every audit ends with the close of its account."""

    async def work(bench):
        keys = [Pubkey(bytes([number]) * 32) for number in range(5)]
        await bench.rpc.get_accounts(keys)
        for node in bench.nodes:
            node.alter = BAD_ANSWERS["null"]
        for key in keys:
            _slot, (account,) = await bench.rpc.get_accounts([key])
            assert account is None
        return bench.reports.told

    assert on_bench(num_nodes, work) == []


def test_a_frozen_node_is_passed_over_and_a_chain_that_stands_still_is_not():
    async def frozen_one(bench):
        bench.nodes[0].alter = frozen()
        await bench.poll(12)
        return (
            bench.reports.troubles,
            (await bench.rpc.get_accounts([KEY]))[0],
            int(now() * 2.5),
        )

    troubles, slot, current = on_bench(2, frozen_one)
    assert troubles
    assert slot == current

    async def all_frozen(bench):
        for node in bench.nodes:
            node.alter = frozen()
        return await bench.poll(30), bench.reports.troubles

    failed, troubles = on_bench(2, all_frozen)
    assert failed == []
    assert "no slot after" in troubles[0]


def test_the_only_node_may_lag_because_nobody_knows_better():
    async def work(bench):
        await bench.poll(2)
        bench.nodes[0].alter = behind(20)
        return await bench.poll(10)

    assert on_bench(1, work) == []


def test_an_only_address_that_falls_far_back_is_named_however_often_it_is_asked():
    """Several nodes are behind it, and a connection that is kept alive stays with one."""

    async def work(bench):
        await bench.poll(2)
        bench.nodes[0].alter = behind(1_500)
        await bench.poll(2)
        told = list(bench.reports.told)
        bench.nodes[0].alter = None
        await bench.poll(2)
        return told, bench.reports.told[-1]

    told, last = on_bench(1, work)
    assert len(told) == 1
    assert told[0].startswith("trouble a: slot 1005, 1499 behind slot 2504")
    assert last == "recovered a"


def test_one_node_that_claims_the_far_future_does_not_outrun_two():
    async def work(bench):
        bench.nodes[2].alter = behind(-(10**9))
        await bench.poll(40)
        return bench.reports.told, bench.asked(2)

    told, num_asked = on_bench(3, work)
    assert all(one.startswith("trouble c: slot 1000") for one in told)
    assert num_asked == 0


@pytest.mark.parametrize("num_nodes", [2, 3])
def test_the_first_node_that_claims_the_far_future_is_passed_over(num_nodes):
    async def work(bench):
        bench.nodes[0].alter = behind(-(10**9))
        await bench.poll(40)
        slots = [(await bench.rpc.get_accounts([KEY]))[0] for _ in range(20)]
        return bench.reports.troubles, slots, now() * 2.5

    troubles, slots, latest = on_bench(num_nodes, work)
    assert troubles[0].startswith("trouble a: slot 100000")
    assert all(one.startswith("trouble a") for one in troubles)
    assert max(slots) <= latest


def test_a_method_that_one_node_refuses_is_asked_of_another_and_costs_it_no_rest():
    async def work(bench):
        bench.nodes[0].raises = lacking
        await bench.rpc.get_accounts([KEY])
        bench.nodes[1].raises = refused
        with pytest.raises(RpcRefusedError, match="Method not found"):
            await bench.rpc.get_accounts([KEY])
        return [one for one in bench.reports.told if " a" in one]

    assert on_bench(2, work) == []


def test_a_transaction_goes_to_one_node_first_and_to_all_when_it_is_repeated():
    async def work(bench):
        raw = b"\1" + bytes(64) + b"body"
        await bench.rpc.send(raw)
        first = [len(one.sent) for one in bench.scripted]
        await bench.rpc.send(raw)
        await bench.rpc.send(b"\1" + b"o" * 64)
        return first, [len(one.sent) for one in bench.scripted]

    first, all_sent = on_bench(3, work)
    assert first == [1, 0, 0]
    assert all_sent == [3, 1, 1]


def test_a_transaction_is_landed_if_one_node_has_it_in_its_history():
    async def work(bench):
        signature = Signature.default()
        bench.scripted[1].known.add(signature)
        return (
            await bench.rpc.statuses([signature]),
            await bench.rpc.statuses([signature], search_history=True),
        )

    recent, in_history = on_bench(2, work)
    assert recent == [None]
    assert in_history == ["landed"]


def test_a_node_in_reserve_is_looked_at_before_it_is_needed():
    async def work(bench):
        bench.nodes[1].raises = refused
        await bench.poll(25)
        return bench.reports.told[0]

    assert on_bench(2, work).startswith("trouble b: ")


def test_the_name_of_a_node_shows_no_key():
    url = "https://user:secret@node.example:8443/v2/key?api-key=secret"
    rpc = FailoverRpc.over([url, url, url + "2", "http://[::1", "http://[::1]:8899"])
    assert list(rpc.nodes) == [
        "https://node.example:8443",
        "https://node.example:8443 (2)",
        "an address that cannot be read",
        "http://[::1]:8899",
    ]
