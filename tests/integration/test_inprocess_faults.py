"""Trainers that lie or fail, one by one: nobody vouches for what is wrong, and nobody stumbles."""

import shutil
from dataclasses import replace

import pytest
from support.data_sets import with_token
from support.ports import (
    LIAR,
    LIE_ROUND,
    Wrapped,
    encoding,
    fail_once,
    training,
    vouch_for_everything,
    withhold,
)
from support.runs import (
    CHAIN,
    NO_AUDITS,
    RunFactory,
    assert_fees_reported,
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
    void_rounds,
)

from troth_attestation import header as headers
from troth_client.compression import codec
from troth_client.network.expecting import SIGNED_HEADER_BYTES
from troth_client.participant import housekeeping
from troth_client.participant.turns import is_our_turn
from troth_client.state.past_states import MEMORY_BYTES
from troth_client.steps.collect import REPORT_AFTER_SHARE, REPORT_AFTER_SLOTS
from troth_client.train import errors as train_errors
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import FetchError
from troth_client.transport.memory import memory_transport
from troth_coordinator.rules.assignment import SequenceOrder
from troth_coordinator.rules.phase import Phase

pytestmark = pytest.mark.long(reason="a whole run for each thing that can fail in a round")


@pytest.mark.parametrize("kind", ["gradient", "u"])
async def test_a_gradient_with_nan_sends_nothing_and_the_run_goes_on(run_factory, kind):
    def gradient(batch):
        found = sick.here.work.inner.gradient(batch)
        if sick.here.state.replica.round == LIE_ROUND:
            raise train_errors.NonFiniteGradientError("a finite gradient", "nan", "")
        return found

    def propose(round_, found):
        if round_ == LIE_ROUND:
            next(iter(found.tensors.values())).view(-1)[0] = float("nan")
        return sick.here.work.inner.propose(round_, found)

    broken = {"gradient": gradient} if kind == "gradient" else {"propose": propose}
    run = await run_factory.create(5)
    run.wrap = lambda one, ports: training(ports, **broken) if one.name == "dan" else ports
    await start_members(run, ["ada", "bob", "cyd", "dan"])
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


async def test_a_token_that_the_creator_hid_costs_one_round_and_ends_no_member(data, tmp_path):
    """One token too large in one sequence of the data set, whose hash is on chain."""
    folder, manifest = data
    copy = tmp_path / "data"
    shutil.copytree(folder, copy)
    place = 0
    while True:  # the manifest's hash seeds the order, so a change of the place moves the place
        bad, _ = with_token(copy, manifest, place * manifest.row_tokens, 300)
        first = SequenceOrder(bad.num_sequences, bad.hash).sequences(0, 2)
        if place in first:
            break
        with_token(copy, manifest, place * manifest.row_tokens, 32)
        place += 1
    factory = RunFactory((copy, bad), tmp_path / "runs")
    run = await factory.start(3, names="ada bob cyd dan")
    try:
        await run.finish()
        await assert_finished(run)
        refused = {one.name: events_of(run, one.name, "gradient_refused") for one in run.members}
        (name,) = [name for name, found in refused.items() if found]
        ((event,), rounds) = refused[name], included(run, "ada")
        assert event["round"] == 0
        assert "token 300" in event["reason"]
        assert [len(rounds[round_]) for round_ in range(3)] == [3, 4, 4]
    finally:
        await factory.close()


async def test_a_malformed_own_payload_is_never_committed(run_factory, monkeypatch):
    """A broken encoder must not cost the stake of its owner (P2)."""
    honest = codec.encode
    run = await run_factory.start(3, names="ada bob cyd dan")
    residual = member(run, "dan").here.state.residual

    def broken(votes):
        data = honest(votes)
        is_dans = residual.proposal is not None and votes is residual.proposal.sent
        return bytes(len(data) - 1) + b"\x80" if is_dans else data

    monkeypatch.setattr(codec, "encode", broken)
    await run.finish()
    await assert_finished(run)
    assert len(events_of(run, "dan", "gradient_refused")) == 3
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(3)}


def serve_nothing(name: str):
    """The named member keeps its own payload to itself: it neither serves nor pushes."""

    def wrap(one, ports):
        if one.name != name:
            return ports

        async def push(round_, holders):
            return ()

        silent = Wrapped(ports.transport, hold=lambda blob, data: None, push=push)
        return replace(ports, transport=silent)

    return wrap


async def test_who_never_publishes_is_not_included_and_takes_a_strike(run_factory):
    run = await run_factory.create(6, rounds_per_epoch=50)
    run.wrap = serve_nothing("dan")
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    view = await until_round(run, 2)
    (account,) = await run.client.read_rounds(run.at.run, [1])
    assert account.included == 0b0111
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


async def test_nothing_is_served_before_commit_has_ended(run_factory):
    """A stranger asks for what is committed and not released; when Commit has ended it gets it."""
    run = await run_factory.create(3)
    with time_stopped(run):
        await start_members(run, ["ada", "bob", "cyd"])
        await join_by_hand(run, "dan")  # it commits to nothing: the Commit phase stays open
        view = await until(run, lambda view: num_committed(view) == 3, is_stopped=True)
        wanted = [blob for one in run.members[:3] for blob in blobs_of(one.here.state.store)]
        for blob, size in wanted:
            with pytest.raises(FetchError, match="nothing"):
                await ask(run, blob, size)
        assert (await run.view()).run.phase == Phase.COMMIT
        await until(run, lambda view: view.run.phase == Phase.ATTEST, is_stopped=True)
        await run.runtime.wait()
        for blob, size in wanted:
            assert blob.matches(await ask(run, blob, size))
    await run.finish()
    assert view.run.round == 0


def blobs_of(store) -> list[tuple[BlobId, int]]:
    """Header and payload of a member's submission of round 0, with their sizes."""
    stored = store.load_submission(0)
    header = headers.decode(stored.header)
    return [
        (BlobId(0, BlobKind.HEADER, headers.header_hash(header)), SIGNED_HEADER_BYTES),
        (BlobId(0, BlobKind.PAYLOAD, header.payload_root), len(stored.payload)),
    ]


async def ask(run, blob: BlobId, size: int) -> bytes:
    """The bytes that a stranger gets from the three trainers."""
    async with memory_transport(run.network, "spy") as transport:
        return await transport.fetch(blob, ["ada", "bob", "cyd"], size, bytes)


async def test_a_malformed_payload_that_was_included_adds_nothing_anywhere(
    run_factory, monkeypatch
):
    """Three of four vouch for a payload with descending indices: all apply it as zero."""
    honest = codec.encode

    def swapped(signs):
        indices = signs.indices.copy()
        indices[0, 0], indices[0, 1] = signs.indices[0, 1], signs.indices[0, 0]
        return honest(replace(signs, indices=indices))

    def payload(proposal):
        return (swapped if proposal.round == LIE_ROUND else honest)(proposal.sent)

    vouch_for_everything(monkeypatch)
    run = await run_factory.create(5)
    run.wrap = lambda one, ports: encoding(ports, payload) if one.name == "dan" else ports
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    await run.finish()
    await assert_finished(run)
    assert included(run, "ada")[LIE_ROUND] == [0, 1, 2, 3]
    for name in ("ada", "bob", "cyd", "dan"):
        (malformed,) = events_of(run, name, "payload_malformed")
        assert malformed["index"] == LIAR
        assert malformed["round"] == LIE_ROUND
        assert "ascending" in malformed["reason"]
    # Without it, the weights would be others: the round is not simply skipped.
    assert included(run, "ada")[LIE_ROUND + 1] == [0, 1, 2, 3]


async def test_a_malformed_payload_is_not_vouched_for(run_factory):
    honest = codec.encode

    def payload(proposal):
        return honest(proposal.sent)[:-1] + b"\x80"

    run = await run_factory.create(3)
    run.wrap = lambda one, ports: encoding(ports, payload) if one.name == "dan" else ports
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    await run.finish()
    await assert_finished(run)
    assert included(run, "ada") == {round_: [0, 1, 2] for round_ in range(3)}
    assert {one["index"] for one in events_of(run, "bob", "payload_malformed")} == {LIAR}


@pytest.mark.parametrize(
    "past_bytes",
    [
        MEMORY_BYTES,
        pytest.param(0, marks=pytest.mark.long(reason="the same whole run, from the disk")),
    ],
)
async def test_a_withheld_payload_that_was_included_is_struck_and_all_apply_again(
    run_factory, monkeypatch, past_bytes
):
    """Colluders vouch for a payload that only dan and fay hold. The others report it; dan, who had
    applied it and trained the next round on it, and the one who made it, go back and apply again.
    The maker finds no memory for its momentum at first, and goes back at the next look.
    """
    vouch_for_everything(monkeypatch)
    run = await run_factory.create(7)
    run.past_bytes = past_bytes
    withhold(run, LIE_ROUND, "dan", "fay")
    calls = fail_once(run, "dan", "ResidualState.rewind")
    await start_members(run, ["ada", "bob", "cyd", "dan", "eve", "fay"])
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
    assert len(calls) == 2
    first = next(one for one in events_of(run, "ada", "encoded") if one["round"] == LIE_ROUND + 2)
    assert first["previous"] == LIE_ROUND
    assert_fees_reported(run)
    # Nobody was put into the minority by training on what was struck.
    assert not any(events_of(run, one.name, "root_differs") for one in run.members)


async def test_a_correction_that_came_while_we_were_down_is_found(run_factory, monkeypatch):
    """Killed after applying a payload that is struck meanwhile: the stored weights are wrong."""
    vouch_for_everything(monkeypatch)
    run = await run_factory.create(7)
    withhold(run, LIE_ROUND, "dan", "fay")
    await start_members(run, ["ada", "bob", "cyd", "dan", "eve", "fay"])
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


def lacking_round_1(name, is_blocked):
    """The named member is pushed nothing of round 1, and fetches none of it while `is_blocked`."""

    def wrap(one, ports):
        if one.name != name:
            return ports

        async def fetch(blob, holders, num_bytes, check):
            if is_blocked() and blob.round == 1:
                raise FetchError(blob.address, ())
            return await ports.transport.fetch(blob, holders, num_bytes, check)

        def expect(blob, num_bytes, check):
            if blob.round != 1:
                ports.transport.expect(blob, num_bytes, check)

        return replace(ports, transport=Wrapped(ports.transport, fetch=fetch, expect=expect))

    return wrap


async def test_a_hidden_payload_of_few_is_waited_for_not_reported_at_once(run_factory):
    """One member lacks what the others hold: it lags, catches up, and nobody is struck."""
    run = await run_factory.create(6)
    blocked = {"on": True}
    run.wrap = lacking_round_1("cyd", lambda: blocked["on"])
    await start_members(run, ["ada", "bob", "cyd", "dan", "eve"])
    begun = await until(run, lambda view: bool(events_of(run, "cyd", "lagging")))
    await until(run, lambda view: view.slot >= begun.slot + 4)
    assert len(events_of(run, "cyd", "lagging")) == 1, "said once, not at each look"
    assert not events_of(run, "cyd", "reported_missing")
    blocked["on"] = False
    await run.finish()
    view = await assert_finished(run)
    assert all(entry.strikes == 0 for entry in view.entries[:5])
    assert 2 in included(run, "ada")[4]


async def test_who_comes_back_late_in_a_round_does_not_report_at_its_first_try(run_factory):
    """The open round has waited enough by then, but the member itself has not: one try failed."""
    run = await run_factory.create(6, **NO_AUDITS)
    run.wrap = lacking_round_1("cyd", lambda: not events_of(run, "cyd", "lagging"))
    await start_members(run, ["ada", "bob", "cyd", "dan", "eve"])
    cyd = member(run, "cyd")
    await until_round(run, 1, Phase.ATTEST)
    await run.stop(cyd)
    opened = (await until_round(run, 2)).round.open_slot
    patience = max(REPORT_AFTER_SLOTS, CHAIN["commit_slots"] // REPORT_AFTER_SHARE)
    await until(run, lambda view: view.slot > opened + patience)
    await run.start(cyd)
    lagged = await until(run, lambda view: bool(events_of(run, "cyd", "lagging")))
    assert lagged.run.round == 2, "the round in which a report would count"
    await run.finish()
    view = await assert_finished(run)
    assert len(events_of(run, "cyd", "lagging")) == 1
    assert not events_of(run, "cyd", "reported_missing")
    strikes = [entry.strikes for entry in view.entries[:5]]
    assert strikes == [0, 0, 1, 0, 0], "its own: nobody else had the payload with which it died"


async def test_a_crash_of_the_runs_random_numbers_changes_nothing_on_chain(
    run_factory, monkeypatch
):
    """Nothing that peers draw at random decides what is included, nor who sends a transition."""
    ends = []
    for salt in (1, 2):

        def other_turn(index, view, step, salt=salt):
            return is_our_turn(index, view, (*step, salt))

        monkeypatch.setattr(housekeeping, "is_our_turn", other_turn)
        run = await run_factory.start(4, names="ada bob cyd", seed=5)
        for one in run.members:
            one.here.submissions.random.seed(salt)
        await run.finish()
        ends.append(included(run, "ada"))
    assert ends[0] == ends[1]
