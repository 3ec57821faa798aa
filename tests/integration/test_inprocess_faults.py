"""Trainers that lie or fail, one by one: nobody vouches for what is wrong, and nobody stumbles."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from integration.inprocess_support import (
    assert_finished,
    enter,
    events_of,
    included,
    member,
    time_stopped,
    until,
    until_round,
    void_rounds,
)
from solders.keypair import Keypair

from troth_attestation import header as headers
from troth_client.payload import codec
from troth_client.steps import attest as attest_step
from troth_client.steps import commit as commit_step
from troth_client.steps import fetch as fetch_step
from troth_client.steps import produce
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import FetchError
from troth_client.transport.memory import memory_transport
from troth_coordinator.chain.operations import Session
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.root import root_vote

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


def lie(monkeypatch, lies: dict[int, tuple[int, str]]) -> None:
    """Let trainers commit to headers with one false field, signed as well as they can.

    lies: round -> index of the liar, name of the field.
    """
    honest, sign, current = produce._header, headers.sign, commit_step._is_current

    def lying(peer, plan, *args):
        header = honest(peer, plan, *args)
        liar, field = lies.get(plan.round, (None, ""))
        return replace(header, **{field: FALSE_FIELDS[field]}) if peer.index == liar else header

    def signing(header, seed):
        is_other = header.session == bytes(OTHER_KEY.pubkey())
        return sign(header, bytes(OTHER_KEY)[:32] if is_other else seed)

    def is_current(peer, header):
        # An honest client would notice that it votes for another root or with another key.
        is_lie = lies.get(peer.replica.round, (None,))[0] == peer.index
        return is_lie or current(peer, header)

    monkeypatch.setattr(produce, "_header", lying)
    monkeypatch.setattr(headers, "sign", signing)
    monkeypatch.setattr(commit_step, "_is_current", is_current)


def assert_not_vouched(run, round_: int, liar: int, field: str) -> None:
    """Nobody but perhaps the liar vouched for its payload of that round, and all say why."""
    honest = [one.name for one in run.members if one.index != liar]
    for name in honest:
        refused = [one for one in events_of(run, name, "header_refused") if one["round"] == round_]
        assert [(one["index"], one["field"]) for one in refused] == [(liar, field)]
        assert field in refused[0]["reason"]
        attested = [one for one in events_of(run, name, "attested") if one["round"] == round_]
        assert attested[0]["held"] == len(honest)
    assert included(run, honest[0])[round_] == [
        one.index for one in run.members if one.index != liar
    ]


async def test_each_false_field_is_named_and_not_vouched_for(theatre, monkeypatch):
    """One lie a round, by turns, so that nobody is jailed for it before the end."""
    fields = sorted(set(FALSE_FIELDS) - {"state_root"})
    lies = {2 + n: (1 + n % 7, field) for n, field in enumerate(fields)}
    rounds = len(fields) + 4
    lie(monkeypatch, lies)
    run = await theatre.start(rounds, cast="ada bob cyd dan eve fay gil hal")
    await run.finish()
    await assert_finished(run)
    for round_, (liar, field) in lies.items():
        assert_not_vouched(run, round_, liar, field)
        # Honest again, it goes on with the residual of its last included round.
        encoded = events_of(run, run.members[liar].name, "encoded")
        again = next(one for one in encoded if one["round"] == round_ + 1)
        assert again["previous"] == round_ - 1, field
    assert included(run, "ada")[rounds - 1] == list(range(8))


async def test_a_false_state_root_is_a_minority_vote_that_is_not_included(theatre, monkeypatch):
    """Header and vote agree with each other: the payload is available, its root is wrong."""
    lie(monkeypatch, {LIE_ROUND: (LIAR, "state_root")})
    run = await theatre.start(5, cast="ada bob cyd dan")
    await run.finish()
    await assert_finished(run)
    assert included(run, "ada")[LIE_ROUND] == [0, 1, 2]
    assert not events_of(run, "ada", "header_refused")


async def test_a_vote_that_does_not_fit_the_header_is_named(theatre, monkeypatch):
    """The header tells the truth, the vote on chain was copied from another trainer."""
    run = await theatre.start(5, cast="ada bob cyd dan")
    liar, ada = member(run, "dan").here, member(run, "ada").here

    def vote(run_, round_, owner, state_root):
        is_liar = owner == liar.identity.owner_address and round_ == LIE_ROUND
        return root_vote(run_, round_, ada.identity.owner_address if is_liar else owner, state_root)

    monkeypatch.setattr(commit_step, "root_vote", vote)
    await run.finish()
    await assert_finished(run)
    assert_not_vouched(run, LIE_ROUND, LIAR, "state_root")


async def join_by_hand(run, name: str) -> Session:
    """A participant without a client: joined and ready, it does what the test says."""
    one = await run.add(name)
    session = Session(run.client, run.at, one.session, one.index)
    view = await until(run, lambda view: view.run.phase == Phase.WARMUP, is_stopped=True)
    await session.ready(0, vote_of(run, name, 0, view.run.root))
    return session


def vote_of(run, name: str, round_: int, root: bytes) -> bytes:
    return root_vote(bytes(run.at.run), round_, bytes(member(run, name).owner.pubkey()), root)


def num_committed(view) -> int:
    return 0 if view.round is None else bitmap.count(view.round.committed)


async def test_a_copied_header_hash_is_not_vouched_for(theatre):
    """A trainer without work commits to the hash of somebody else's header, as its own."""
    run = await theatre.create(4)
    with time_stopped(run):
        await enter(run, ["ada", "bob", "cyd"])
        thief = await join_by_hand(run, "dan")
        view = await until(run, lambda view: num_committed(view) == 3, is_stopped=True)
        vote = vote_of(run, "dan", 0, view.run.genesis_root)
        await thief.commit_payload(0, view.round.slots[0].header_hash, vote)
    await run.finish()
    for name in ("ada", "bob", "cyd"):
        (refused,) = events_of(run, name, "header_refused")
        assert (refused["index"], refused["field"]) == (thief.index, "index")
    assert included(run, "ada")[0] == [0, 1, 2]


@pytest.mark.parametrize("kind", ["gradient", "u"])
async def test_a_gradient_with_nan_sends_nothing_and_the_run_goes_on(theatre, monkeypatch, kind):
    if kind == "gradient":
        honest = produce.gradient

        def broken(model, batch, *args):
            found = honest(model, batch, *args)
            if model is sick.here.model and sick.here.replica.round == LIE_ROUND:
                raise produce.train_errors.NonFiniteError("a finite gradient", "nan", "")
            return found

        monkeypatch.setattr(produce, "gradient", broken)
    else:
        honest_dct = produce.dct2

        def dct(tiles):
            found = honest_dct(tiles)
            if sick.here.step == "encode" and sick.here.replica.round == LIE_ROUND:
                found[0, 0, 0] = float("nan")
            return found

        monkeypatch.setattr(produce, "dct2", dct)
    run = await theatre.start(5, cast="ada bob cyd dan")
    sick = member(run, "dan")
    await run.finish()
    await assert_finished(run)
    (refused,) = events_of(run, "dan", "gradient_refused")
    assert refused["round"] == LIE_ROUND
    assert included(run, "ada")[LIE_ROUND] == [0, 1, 2]
    # It attests all the same, and comes back with the residual of its last included round.
    assert len(events_of(run, "dan", "attested")) == 5
    assert included(run, "ada")[LIE_ROUND + 1] == [0, 1, 2, 3]
    later = [one for one in events_of(run, "dan", "encoded") if one["round"] > LIE_ROUND]
    assert [one["previous"] for one in later] == [LIE_ROUND - 1, LIE_ROUND + 1]


async def test_a_malformed_own_payload_is_never_committed(theatre, monkeypatch):
    """A broken encoder must not cost the stake of its owner (P2)."""
    honest = codec.encode

    def broken(votes):
        data = honest(votes)
        return bytes(len(data) - 1) + b"\x80" if run.clock and peer.step == "encode" else data

    run = await theatre.start(3, cast="ada bob cyd dan")
    peer = member(run, "dan").here
    monkeypatch.setattr(produce.codec, "encode", broken)
    await run.finish()
    await assert_finished(run)
    assert len(events_of(run, "dan", "gradient_refused")) == 3
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(3)}


class Wrapped:
    """A transport with some calls replaced."""

    def __init__(self, inner, **calls):
        self._inner = inner
        self._calls = calls

    def __getattr__(self, name):
        return self._calls.get(name) or getattr(self._inner, name)


def serve_nothing(name: str):
    """The named member keeps its own payload to itself: it neither serves nor pushes."""

    def wrap(one, doors):
        if one.name != name:
            return doors

        async def push(round_, holders):
            return ()

        silent = Wrapped(doors.transport, hold=lambda blob, data: None, push=push)
        return replace(doors, transport=silent)

    return wrap


async def test_who_never_publishes_is_not_included_and_takes_a_strike(theatre):
    run = await theatre.create(6, rounds_per_epoch=50)
    run.wrap = serve_nothing("dan")
    await enter(run, ["ada", "bob", "cyd", "dan"])
    view = await until_round(run, 2)
    assert included(run, "ada")[1] == [0, 1, 2]
    assert view.entries[3].strikes == 2  # P4, once a round
    for name in ("ada", "bob", "cyd"):
        assert {one["index"] for one in events_of(run, name, "fetch_failed")} == {3}
    # Everybody waited for it as long as the rules allow, and attested in time all the same.
    assert all(one["held"] == 3 for one in events_of(run, "ada", "attested"))
    view = await until_round(run, 4)
    assert view.entries[3].strikes == 3
    assert view.entries[3].status.name == "JAILED"
    await run.finish()
    await assert_finished(run)


async def test_nothing_is_served_before_commit_has_ended(theatre):
    """A stranger asks for what is committed and not released; when Commit has ended it gets it."""
    run = await theatre.create(3)
    with time_stopped(run):
        await enter(run, ["ada", "bob", "cyd"])
        await join_by_hand(run, "dan")  # it commits to nothing: the Commit phase stays open
        view = await until(run, lambda view: num_committed(view) == 3, is_stopped=True)
        wanted = [blob for one in run.members[:3] for blob in blobs_of(one.here.store)]
        for blob, size in wanted:
            with pytest.raises(FetchError, match="nothing"):
                await ask(run, blob, size)
        assert (await run.view()).run.phase == Phase.COMMIT
        await until(run, lambda view: view.run.phase == Phase.ATTEST, is_stopped=True)
        await run.clock.wait()
        for blob, size in wanted:
            assert blob.matches(await ask(run, blob, size))
    await run.finish()
    assert view.run.round == 0


def blobs_of(store) -> list[tuple[BlobId, int]]:
    """Header and payload of a member's submission of round 0, with their sizes."""
    stored = store.load_submission(0)
    header = headers.decode(stored.header)
    return [
        (BlobId(0, BlobKind.HEADER, headers.header_hash(header)), fetch_step.SIGNED_HEADER_BYTES),
        (BlobId(0, BlobKind.PAYLOAD, header.payload_root), len(stored.payload)),
    ]


async def ask(run, blob: BlobId, size: int) -> bytes:
    """What a stranger gets from the three trainers."""
    async with memory_transport(run.network, "spy") as transport:
        return await transport.fetch(blob, ["ada", "bob", "cyd"], size, bytes)


async def test_a_malformed_payload_that_was_included_adds_nothing_anywhere(theatre, monkeypatch):
    """Three of four vouch for a payload with descending indices: all apply it as zero."""
    honest = codec.encode

    def swapped(votes):
        indices = votes.indices.clone()
        indices[0, 0], indices[0, 1] = votes.indices[0, 1], votes.indices[0, 0]
        return honest(replace(votes, indices=indices))

    def payload(peer, proposal):
        is_lie = peer.index == LIAR and proposal.round == LIE_ROUND
        return swapped(proposal.sent) if is_lie else honest(proposal.sent)

    monkeypatch.setattr(produce, "_payload", payload)
    vouch_for_everything(monkeypatch)
    run = await theatre.start(5, cast="ada bob cyd dan")
    await run.finish()
    await assert_finished(run)
    assert included(run, "ada")[LIE_ROUND] == [0, 1, 2, 3]
    for name in ("ada", "bob", "cyd", "dan"):
        (malformed,) = events_of(run, name, "payload_malformed")
        assert (malformed["index"], malformed["round"]) == (LIAR, LIE_ROUND)
        assert "ascending" in malformed["reason"]
    # Without it, the weights would be others: the round is not simply skipped.
    assert included(run, "ada")[LIE_ROUND + 1] == [0, 1, 2, 3]


async def test_a_malformed_payload_is_not_vouched_for(theatre, monkeypatch):
    honest = codec.encode

    def payload(peer, proposal):
        data = honest(proposal.sent)
        return data[:-1] + b"\x80" if peer.index == LIAR else data

    monkeypatch.setattr(produce, "_payload", payload)
    run = await theatre.start(3, cast="ada bob cyd dan")
    await run.finish()
    await assert_finished(run)
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(3)}
    assert {one["index"] for one in events_of(run, "bob", "payload_malformed")} == {LIAR}


def vouch_for_everything(monkeypatch) -> None:
    """Members who vouch blindly for whatever was committed."""

    class Blind(dict):
        pass

    honest = attest_step.possession

    def possession(run, round_, owner, payloads):
        proof = bytearray(honest(run, round_, owner, payloads))
        proof[LIAR] = 1
        return bytes(proof)

    def vouched(payloads):
        return bitmap.from_indices([*payloads, LIAR])

    monkeypatch.setattr(attest_step, "possession", possession)
    monkeypatch.setattr(attest_step, "vouched", vouched)


def withhold(run, round_: int, target: str, served_to: str) -> None:
    """Only one member ever gets the target's payload of a round."""

    def wrap(one, doors):
        transport = doors.transport

        def is_withheld(blob: BlobId) -> bool:
            stored = member(run, target).here.store.load_submission(round_)
            if stored is None:
                return False
            header = headers.decode(stored.header)
            return blob.key in (headers.header_hash(header), header.payload_root)

        async def fetch(blob, holders, num_bytes, check):
            if one.name not in (target, served_to) and is_withheld(blob):
                raise FetchError(blob.address, ())
            return await transport.fetch(blob, holders, num_bytes, check)

        def expect(blob, num_bytes, check):
            if one.name in (target, served_to) or not is_withheld(blob):
                transport.expect(blob, num_bytes, check)

        return replace(doors, transport=Wrapped(transport, fetch=fetch, expect=expect))

    run.wrap = wrap


async def test_a_withheld_payload_that_was_included_is_struck_and_all_apply_again(
    theatre, monkeypatch
):
    """Colluders vouch for a payload that only dan and fay hold. The others report it; dan, who had
    applied it and trained the next round on it, and the one who made it, go back and apply again.
    """
    vouch_for_everything(monkeypatch)
    run = await theatre.create(7)
    withhold(run, LIE_ROUND, "dan", "fay")
    await enter(run, ["ada", "bob", "cyd", "dan", "eve", "fay"])
    await run.finish()
    view = await assert_finished(run)
    for name in ("ada", "bob", "cyd", "dan", "eve", "fay"):
        assert included(run, name)[LIE_ROUND] == [0, 1, 2, 4, 5], name
        assert void_rounds(run, name)[-1:] == [LIE_ROUND + 1], name
    for name in ("ada", "bob", "cyd"):
        assert events_of(run, name, "lagging")[0]["missing"] == [LIAR]
    reported = [
        name for name in ("ada", "bob", "cyd", "eve") if events_of(run, name, "reported_missing")
    ]
    assert len(reported) >= 3
    for name in ("dan", "fay"):
        assert events_of(run, name, "round_corrected")[0]["round"] == LIE_ROUND
    assert view.entries[LIAR].last_included != LIE_ROUND
    # The struck trainer's residual goes on from the round before; the others keep theirs.
    first = next(one for one in events_of(run, "dan", "encoded") if one["round"] == LIE_ROUND + 2)
    assert first["previous"] == LIE_ROUND - 1
    first = next(one for one in events_of(run, "ada", "encoded") if one["round"] == LIE_ROUND + 2)
    assert first["previous"] == LIE_ROUND
    # Nobody was put into the minority by training on what was struck.
    assert not any(events_of(run, one.name, "root_differs") for one in run.members)


async def test_a_correction_that_came_while_we_were_down_is_found(theatre, monkeypatch):
    """Killed after applying a payload that is struck meanwhile: the stored weights are wrong."""
    vouch_for_everything(monkeypatch)
    run = await theatre.create(7)
    withhold(run, LIE_ROUND, "dan", "fay")
    await enter(run, ["ada", "bob", "cyd", "dan", "eve", "fay"])
    fay = member(run, "fay")
    await until(
        run, lambda view: any(one["round"] == LIE_ROUND for one in fay.events.named("round_closed"))
    )
    await run.stop(fay)
    await until_round(run, LIE_ROUND + 2)
    await run.start(fay)
    await run.finish()
    await assert_finished(run)
    assert not fay.events.named("root_differs")
    assert included(run, "fay")[LIE_ROUND] == [0, 1, 2, 4, 5]


async def test_a_hidden_payload_of_few_is_waited_for_not_reported_at_once(theatre):
    """One member lacks what the others hold: it lags, catches up, and nobody is struck."""
    run = await theatre.create(6)
    blocked = {"on": True}

    def wrap(one, doors):
        if one.name != "cyd":
            return doors

        async def fetch(blob, holders, num_bytes, check):
            if blocked["on"] and blob.round == 1:
                raise FetchError(blob.address, ())
            return await doors.transport.fetch(blob, holders, num_bytes, check)

        def expect(blob, num_bytes, check):
            if blob.round != 1:
                doors.transport.expect(blob, num_bytes, check)

        return replace(doors, transport=Wrapped(doors.transport, fetch=fetch, expect=expect))

    run.wrap = wrap
    await enter(run, ["ada", "bob", "cyd", "dan", "eve"])
    await until(run, lambda view: len(events_of(run, "cyd", "lagging")) >= 4)
    assert not events_of(run, "cyd", "reported_missing")
    blocked["on"] = False
    await run.finish()
    view = await assert_finished(run)
    assert all(entry.strikes == 0 for entry in view.entries[:5])
    assert 2 in included(run, "ada")[4]


async def test_a_crash_of_the_runs_random_numbers_changes_nothing_on_chain(theatre):
    """Nothing that peers draw at random decides what is included."""
    ends = []
    for salt in (1, 2):
        run = await theatre.start(4, cast="ada bob cyd", seed=5)
        for one in run.members:
            one.here.random.seed(salt)
        await run.finish()
        ends.append(included(run, "ada"))
    assert ends[0] == ends[1]


def test_numbers_of_false_fields_cover_the_header():
    """A new header field needs its own lie here."""
    own = {"residual_after", "payload_root", "mean_loss", "salt"}  # what the trainer itself states
    fields = set(headers.Header.__dataclass_fields__)
    assert fields - own == set(FALSE_FIELDS)
    assert np.all([isinstance(name, str) for name in fields])
    assert asyncio.iscoroutinefunction(produce.encode)
