"""Whole runs with a trainer that lies in its header: named, and not vouched for."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from solders.keypair import Keypair
from support.runs import (
    assert_finished,
    events_of,
    included,
    join_by_hand,
    member,
    num_committed,
    start_members,
    time_stopped,
    until,
    vote_of,
)

from troth_attestation import header as headers
from troth_client.steps import commit as commit_step
from troth_client.steps import produce
from troth_coordinator.rules.root import root_vote

pytestmark = pytest.mark.long(reason="eight trainers, and a lie about each field of a header")

LIAR = 3
LIE_ROUND = 2
OTHER_KEY = Keypair.from_seed(b"\x07" * 32)

FALSE_FIELDS = {
    "genesis_hash": b"g" * 32,
    "program_id": b"p" * 32,
    "run": b"r" * 32,
    "epoch": 7,
    "round": 1,
    "index": 1,
    "owner": b"o" * 32,
    "session": bytes(OTHER_KEY.pubkey()),
    "config_hash": b"c" * 32,
    "state_root": b"s" * 32,
    "data_root": b"d" * 32,
    "previous_included": 0,
    "residual_before": b"b" * 32,
    "payload_bytes": 1,
}


def lie(monkeypatch, lies: dict[int, dict[int, str]]) -> None:
    """Let trainers commit to headers with one false field, signed as well as they can.

    lies: round -> index of each liar and the name of its field.
    """
    honest, sign, current = produce.header_of, headers.sign, commit_step.is_current

    def lying(state, chain, plan, made):
        header = honest(state, chain, plan, made)
        field = lies.get(plan.round, {}).get(chain.index)
        return header if field is None else replace(header, **{field: FALSE_FIELDS[field]})

    def signing(header, seed):
        is_other = header.session == bytes(OTHER_KEY.pubkey())
        return sign(header, bytes(OTHER_KEY)[:32] if is_other else seed)

    def is_current(chain, state, header):
        # An honest client would notice that it votes for another root or with another key.
        is_lie = chain.index in lies.get(state.replica.round, {})
        return is_lie or current(chain, state, header)

    monkeypatch.setattr(produce, "header_of", lying)
    monkeypatch.setattr(headers, "sign", signing)
    monkeypatch.setattr(commit_step, "is_current", is_current)


def assert_not_vouched(run, round_: int, fields: dict[int, str]) -> None:
    """Nobody but perhaps a liar vouched for its payload of that round, and all say why."""
    honest = [one for one in run.members if one.index not in fields]
    for name in (one.name for one in honest):
        refused = [one for one in events_of(run, name, "header_refused") if one["round"] == round_]
        assert {one["index"]: one["field"] for one in refused} == fields
        assert len(refused) == len(fields), "each lie is named once"
        assert all(one["field"] in one["reason"] for one in refused)
        attested = [one for one in events_of(run, name, "attested") if one["round"] == round_]
        assert attested[0]["held"] == len(honest)
    assert included(run, honest[0].name)[round_] == [one.index for one in honest]


async def test_each_false_field_is_named_and_not_vouched_for(run_factory, monkeypatch):
    """Two lies a round, by turns, so that nobody is jailed for it before the end."""
    fields = sorted(set(FALSE_FIELDS) - {"state_root"})
    lies = {}
    for n, field in enumerate(fields):
        lies.setdefault(2 + n // 2, {})[1 + n % 7] = field
    rounds = len(lies) + 4
    lie(monkeypatch, lies)
    run = await run_factory.start(rounds, names="ada bob cyd dan eve fay gil hal")
    await run.finish()
    await assert_finished(run)
    for round_, told in lies.items():
        assert_not_vouched(run, round_, told)
        for liar, field in told.items():
            # Honest again, it goes on with the residual of its last included round.
            encoded = events_of(run, run.members[liar].name, "encoded")
            again = next(one for one in encoded if one["round"] == round_ + 1)
            assert again["previous"] == round_ - 1, field
    assert included(run, "ada")[rounds - 1] == list(range(8))


async def test_a_false_state_root_is_a_minority_vote_that_is_not_included(run_factory, monkeypatch):
    """Header and vote agree with each other: the payload is available, its root is wrong."""
    lie(monkeypatch, {LIE_ROUND: {LIAR: "state_root"}})
    run = await run_factory.start(5, names="ada bob cyd dan")
    await run.finish()
    await assert_finished(run)
    assert included(run, "ada")[LIE_ROUND] == [0, 1, 2]
    assert not events_of(run, "ada", "header_refused")


async def test_a_vote_that_does_not_fit_the_header_is_named(run_factory, monkeypatch):
    """The header tells the truth, the vote on chain was copied from another trainer."""
    run = await run_factory.start(5, names="ada bob cyd dan")
    liar, ada = (member(run, name).here.chain.identity for name in ("dan", "ada"))

    def vote(run_, round_, owner, state_root):
        is_liar = owner == liar.owner_address and round_ == LIE_ROUND
        return root_vote(run_, round_, ada.owner_address if is_liar else owner, state_root)

    monkeypatch.setattr(commit_step, "root_vote", vote)
    await run.finish()
    await assert_finished(run)
    assert_not_vouched(run, LIE_ROUND, {LIAR: "state_root"})


async def test_a_copied_header_hash_is_not_vouched_for(run_factory):
    """A trainer without work commits to the hash of somebody else's header, as its own."""
    run = await run_factory.create(4)
    with time_stopped(run):
        await start_members(run, ["ada", "bob", "cyd"])
        thief = await join_by_hand(run, "dan")
        view = await until(run, lambda view: num_committed(view) == 3, is_stopped=True)
        vote = vote_of(run, "dan", 0, view.run.genesis_root)
        await thief.commit_payload(0, view.round.ballots[0].header_hash, vote)
    await run.finish()
    for name in ("ada", "bob", "cyd"):
        (refused,) = events_of(run, name, "header_refused")
        assert refused["index"] == thief.index
        assert refused["field"] == "index"
    assert included(run, "ada")[0] == [0, 1, 2]


def test_numbers_of_false_fields_cover_the_header():
    """A new header field needs its own lie here."""
    own = {
        "residual_after",
        "payload_root",
        "mean_loss",
        "salt",
    }  # known to the trainer only
    fields = set(headers.Header.__dataclass_fields__)
    assert fields - own == set(FALSE_FIELDS)
    assert np.all([isinstance(name, str) for name in fields])
    assert asyncio.iscoroutinefunction(produce.encode)
