"""Whole runs whose node fails, for a while and for long, or lags."""

from dataclasses import replace

import pytest
from solders.transaction import VersionedTransaction
from support.runs import (
    NO_AUDITS,
    assert_finished,
    events_of,
    included,
    join_by_hand,
    member,
    num_committed,
    start_members,
    time_stopped,
    until,
    until_round,
)

from troth_attestation import header as headers
from troth_client.transport.base import BlobId, BlobKind
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import RpcUnreachableError, TransactionRejectedError
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.rules.phase import Phase


async def test_a_node_that_fails_for_a_while_costs_nothing_but_time(run_factory):
    run = await run_factory.create(6)
    failing = {"left": 0}

    def wrap(one, ports):
        if one.name != "cyd":
            return ports
        client = CoordinatorClient(Flaky(ports.chain.rpc, failing), sleeper=one_turn)
        return replace(ports, chain=client)

    run.wrap = wrap
    await start_members(run, ["ada", "bob", "cyd"])
    for round_ in range(1, 5):
        await until_round(run, round_)
        failing["left"] = 5 * round_
    await run.finish()
    await assert_finished(run)
    assert len(events_of(run, "cyd", "chain_unreachable")) >= 5
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(6)}


async def test_a_node_that_stays_away_for_long_ends_nobody(run_factory):
    run = await run_factory.create(6, **NO_AUDITS)
    failing = {"left": 0}

    def wrap(one, ports):
        if one.name != "cyd":
            return ports
        client = CoordinatorClient(Flaky(ports.chain.rpc, failing), sleeper=one_turn)
        return replace(ports, chain=client)

    run.wrap = wrap
    await start_members(run, ["ada", "bob", "cyd"])
    await until_round(run, 1)
    failing["left"] = 10**9
    await until_round(run, 3)
    cyd = member(run, "cyd")
    assert cyd.is_running
    failing["left"] = 0
    await run.finish()
    await assert_finished(run)
    assert cyd.here.state.replica.round == 6


async def test_a_node_that_lags_behind_releases_nothing_before_commit_has_ended(run_factory):
    run = await run_factory.create(3)
    node = Lagging(run.rpc, sleeper=one_turn)
    run.wrap = lambda one, ports: replace(ports, chain=node) if one.name == "bob" else ports
    with time_stopped(run):
        await start_members(run, ["ada", "bob"])
        await join_by_hand(run, "dan")  # it commits to nothing: the Commit phase stays open
        await until(run, lambda view: view.run.round == 1, is_stopped=True)
        await until(run, lambda view: num_committed(view) == 2, is_stopped=True)
        node.is_behind = True
        for _ in range(3):
            await run.runtime.wait()
        sent = member(run, "bob").here.state.store.load_submission(1)
        hash_ = headers.header_hash(headers.decode(sent.header))
        address = BlobId(1, BlobKind.HEADER, hash_).address
        assert run.network.reach("bob").served(address) is None
        node.is_behind = False
        view = await until(run, lambda view: view.run.phase == Phase.ATTEST, is_stopped=True)
        assert view.run.round == 1
        await run.runtime.wait()
        assert run.network.reach("bob").served(address) is not None
    await run.finish()
    await assert_finished(run)


@pytest.mark.parametrize("lag_slots", [2, 4])
async def test_what_a_node_behind_the_newest_phase_refuses_is_sent_again(run_factory, lag_slots):
    """Several nodes behind one address: one shows the phase, another checks what is sent."""
    run = await run_factory.create(4, **NO_AUDITS)
    refused = {"num": 0}

    def wrap(one, ports):
        if one.name != "bob":
            return ports
        checked = CheckedBehind(run, ports.chain.rpc, lag_slots, refused)
        return replace(ports, chain=CoordinatorClient(checked, sleeper=one_turn))

    run.wrap = wrap
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    await run.finish()
    await assert_finished(run)
    assert refused["num"] >= 4
    assert events_of(run, "bob", "commit_refused") == []
    assert events_of(run, "bob", "attest_refused") == []
    assert len(events_of(run, "bob", "attested")) == 4
    assert included(run, "ada") == {round_: [0, 1, 2, 3] for round_ in range(4)}


class CheckedBehind:
    """A node that checks commits and attestations on the state of some slots ago."""

    def __init__(self, run, rpc, lag_slots, refused):
        self._run, self._rpc = run, rpc
        self._lag_slots, self._refused = lag_slots, refused
        errors = program_codec().errors.items()
        self._code = next(code for code, one in errors if one.name == "WrongPhase")

    def __getattr__(self, name):
        return getattr(self._rpc, name)

    async def send(self, raw, *, skip_preflight=False):
        message = VersionedTransaction.from_bytes(raw).message
        known = program_codec().instruction_names
        names = [known.get(bytes(one.data)[:8]) for one in message.instructions]
        view = await self._run.client.read_run(self._run.at.run)
        is_old = self._run.chain.slot - view.phase_start_slot < self._lag_slots
        acts = [at for at, name in enumerate(names) if name in ("commit_payload", "attest")]
        if is_old and acts:
            self._refused["num"] += 1
            failure = TransactionFailure("InstructionError", acts[0], "Custom", self._code)
            raise TransactionRejectedError(failure, [])
        return await self._rpc.send(raw, skip_preflight=skip_preflight)


class Lagging(CoordinatorClient):
    """While `is_behind`, its node shows the Attest phase of round 0."""

    is_behind = False

    async def snapshot(self, run):
        view = await super().snapshot(run)
        if (view.run.round, view.run.phase) == (0, Phase.ATTEST):
            self.past = view
        return self.past if self.is_behind else view


async def one_turn(_seconds: float) -> None:
    return None


class Flaky:
    """A node that does not answer for a number of calls."""

    def __init__(self, rpc, failing):
        self._rpc = rpc
        self._failing = failing

    def __getattr__(self, name):
        found = getattr(self._rpc, name)

        async def call(*args, **kwargs):
            if self._failing["left"] > 0:
                self._failing["left"] -= 1
                raise RpcUnreachableError("http://node", f"nothing during {name}")
            return await found(*args, **kwargs)

        return call
