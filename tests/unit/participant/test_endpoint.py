"""An announced endpoint: changed when a process starts at another one, read again by the others."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from solders.hash import Hash
from support.audit_driver import view_at
from support.views import key

from troth_cli.errors import InputError
from troth_cli.workflows.announce import check_announced
from troth_client.network.submissions import REREAD_SLOTS
from troth_client.participant.joining import announce
from troth_client.telemetry.events import EventList
from troth_coordinator.chain.clusters import PUBLIC, public_cluster
from troth_coordinator.chain.errors import ProgramRefusedError, RpcTimeoutError

OLD, NEW = "http://127.0.0.1:9000", "http://203.0.113.7:9000"


@dataclass
class Owner:
    """An owner whose changes of the endpoint land, or are refused."""

    refusal: Exception | None = None
    sent: list[str] = field(default_factory=list)

    async def set_endpoint(self, endpoint):
        if self.refusal is not None:
            raise self.refusal
        self.sent.append(endpoint)
        return SimpleNamespace(fee_lamports=5_000)


@pytest.mark.parametrize(("before", "sent"), [(OLD, [NEW]), (NEW, []), ("", [NEW])])
async def test_a_process_that_starts_elsewhere_announces_it(before, sent):
    owner, events = Owner(), EventList()
    await announce(owner, before, NEW, events)
    assert owner.sent == sent
    assert len(events.named("endpoint_set")) == len(sent)


async def test_a_refusal_is_said_and_ends_nobody():
    failure = SimpleNamespace(instruction=0)
    refusal = ProgramRefusedError("NotJoined", 6_000, "it has left", "", failure)
    owner, events = Owner(refusal), EventList()
    await announce(owner, OLD, NEW, events)
    (found,) = events.named("endpoint_differs")
    assert OLD in found["reason"]
    assert NEW in found["reason"]


class Node:
    """A node of a cluster, as a client asks it which one that is."""

    def __init__(self, genesis):
        self._genesis = genesis

    async def genesis_hash(self):
        return bytes(Hash.from_string(self._genesis))


@pytest.mark.parametrize("genesis", PUBLIC)
async def test_a_private_address_is_not_announced_on_a_public_cluster(genesis):
    cluster = await public_cluster(Node(genesis))
    for bad in (
        "http://127.0.0.1:9000",
        "http://10.0.0.1:1",
        "http://localhost:1",
        "http://[::1]:1",
    ):
        with pytest.raises(InputError, match=PUBLIC[genesis]):
            check_announced(bad, cluster)
    for good in ("", "http://8.8.8.8:1", "http://troth.example:1"):
        check_announced(good, cluster)


async def test_on_a_local_cluster_any_address_is_announced():
    cluster = await public_cluster(Node(str(Hash.default())))
    assert cluster is None
    check_announced("http://127.0.0.1:9000", cluster)


class Announced:
    """The endpoints that the chain shows, and how often they were read."""

    def __init__(self, driver):
        self.of = {key(2): "http://a:1"}
        self.num_reads = 0
        self.failure = None
        driver.node.read_participants = self.read

    async def read(self, _run, owners):
        self.num_reads += 1
        if self.failure is not None:
            raise self.failure
        return [SimpleNamespace(endpoint=self.of.get(bytes(owner), "")) for owner in owners]


def at(slot):
    view = view_at(slot)
    entries = list(view.entries)
    entries[1] = replace(entries[1], owner=key(2))
    return replace(view, entries=tuple(entries))


async def test_others_read_a_changed_endpoint_within_some_slots(driver):
    driver.submissions.endpoints_of.clear()
    announced = Announced(driver)
    find = driver.submissions.addresses
    assert await find(at(1_000), [1]) == {1: "http://a:1"}
    announced.of[key(2)] = "http://b:1"
    assert await find(at(1_000 + REREAD_SLOTS - 1), [1]) == {1: "http://a:1"}
    assert announced.num_reads == 1
    assert await find(at(1_000 + REREAD_SLOTS), [1]) == {1: "http://b:1"}
    assert await find(at(1_000 + REREAD_SLOTS + 1), [1]) == {1: "http://b:1"}
    assert announced.num_reads == 2


async def test_a_node_that_is_away_leaves_the_endpoints_of_before(driver):
    driver.submissions.endpoints_of.clear()
    announced = Announced(driver)
    await driver.submissions.addresses(at(1_000), [1])
    announced.failure = RpcTimeoutError("http://node", "nothing")
    found = await driver.submissions.addresses(at(1_000 + REREAD_SLOTS), [1])
    assert found == {1: "http://a:1"}
    assert driver.named("chain_unreachable")
