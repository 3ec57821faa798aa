"""Every instruction of the program, built by this package and taken by the real program."""

import inspect

import pytest
from solders.pubkey import Pubkey
from support.chain import GENESIS_ROOT, SOL, World, key, vote

from troth_coordinator.chain import audit_instructions, case_instructions
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import (
    AccountMissingError,
    ArtifactError,
    ProgramRefusedError,
    RunFullError,
)
from troth_coordinator.chain.instructions import Manifest
from troth_coordinator.chain.operations import Authority, JoinOffer, Owner, Session
from troth_coordinator.rules.params_view import Admission
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import SeedStatus, Status

POSSESSION = bytes(64)


def names(*sent):
    return [event.name for one in sent for event in one.events]


async def view(running):
    return await running.world.client.snapshot(running.at.run)


async def commit_all(running, round_, root=GENESIS_ROOT, carry=True):
    """Everybody commits; the last commit carries the step to Attest."""
    last = len(running.peers) - 1
    for number, (_owner, session) in enumerate(running.peers):
        advance = make.advance_phase(running.at, session.key.pubkey(), round_)
        carried = [advance] if carry and number == last else []
        root_vote = running.vote(number, round_, root)
        sent = await session.commit_payload(round_, bytes([number + 1] * 32), root_vote, carried)
    return sent


async def attest_all(running, round_):
    bitmap = (1 << len(running.peers)) - 1
    return [await session.attest(round_, bitmap, POSSESSION) for _owner, session in running.peers]


async def play(running, round_, root=GENESIS_ROOT):
    await commit_all(running, round_, root)
    await attest_all(running, round_)
    kept = round_ + 1 - 4
    if kept >= 0:
        await running.crank.freeze_seed(kept)
    sent = await running.crank.close_round((await view(running)).run, root)
    running.world.chain.advance(4)
    return sent


async def test_creating_a_run_is_repeatable():
    world = World()
    terms = world.terms(max_rounds=3)
    authority = Authority.create_at(world.client, world.wallet("authority"), terms)
    sent = await authority.create_run(terms, 5 * SOL)
    assert names(*sent).count("RoundInitialized") == 8
    assert await authority.create_run(terms) == []
    run = await world.client.read_run(authority.at.run)
    assert run.address == bytes(authority.at.run)
    assert run.run_id == b"r" * 32
    assert run.config_hash == b"c" * 32
    assert run.manifest_hash == b"m" * 32
    assert run.genesis_root == GENESIS_ROOT
    assert run.root == GENESIS_ROOT
    assert run.params == terms.params
    assert run.reward_pool == 5 * SOL
    assert run.num_rounds == 8
    assert run.phase == Phase.WAITING_FOR_MEMBERS


async def test_creation_goes_on_where_it_was_interrupted():
    world = World()
    terms = world.terms()
    authority = Authority.create_at(world.client, world.wallet("authority"), terms)
    me = authority.key.pubkey()
    first = [make.create_run(authority.at, me, terms), make.init_roster(authority.at, me)]
    await world.client.send(first, [authority.key])
    await world.client.send([make.init_round(authority.at, me, 5)], [authority.key])
    sent = await authority.create_run(terms)
    assert names(*sent).count("RoundInitialized") == 7
    assert names(*sent).count("RosterInitialized") == 1
    assert (await world.client.snapshot(authority.at.run)).run.num_rounds == 8


async def test_a_snapshot_of_a_run_that_is_not_there():
    world = World()
    nowhere = Authority.create_at(world.client, world.wallet("a"), world.terms()).at
    with pytest.raises(AccountMissingError, match=str(nowhere.run)):
        await world.client.snapshot(nowhere.run)


async def test_joining_takes_the_lowest_free_index_and_funds_the_session():
    world = World()
    authority = await world.create(capacity=3)
    at = authority.at
    for number in range(3):
        owner, session = await world.join(at, number)
        assert session.index == number
        assert world.balance(session.key.pubkey()) == SOL
        participant = await world.client.read_participant(at.run, owner.key.pubkey())
        assert participant.index == number
        assert participant.endpoint == f"http://{number}"
        assert participant.owner == bytes(owner.key.pubkey())
    entries = (await world.client.snapshot(at.run)).entries
    assert [entry.status for entry in entries[:4]] == [Status.PENDING] * 3 + [Status.EMPTY]
    with pytest.raises(RunFullError, match="3 taken"):
        await world.join(at, "late")
    with pytest.raises(RunFullError):
        await owner.join_run(JoinOffer(session.key.pubkey(), 3, "http://again"))


async def test_joining_twice():
    world = World()
    at = (await world.create()).at
    owner, session = await world.join(at, "alice")
    with pytest.raises(ProgramRefusedError) as caught:
        await owner.join_run(JoinOffer(session.key.pubkey(), 3, "http://alice"))
    assert caught.value.name == "AlreadyJoined"
    assert "leave" in caught.value.next_step


async def test_two_joiners_at_the_same_index_end_at_two():
    """Bob reads the roster, Alice joins, Bob's transaction names an index that is taken."""
    world = World()
    at = (await world.create()).at
    bob = Owner(world.client, at, world.wallet("owner", "bob"))
    send, joined = world.client.send, []

    async def alice_first(instructions, signers):
        if not joined:
            joined.append("alice")
            await world.join(at, "alice")
        return await send(instructions, signers)

    world.client.send = alice_first
    index, _sent = await bob.join_run(JoinOffer(key("session", "bob").pubkey(), 3, "http://bob"))
    assert index == 1


async def test_an_allowlist():
    world = World()
    authority = await world.create(admission="allowlist")
    alice = world.wallet("owner", "alice")
    with pytest.raises(ProgramRefusedError) as caught:
        await world.join(authority.at, "alice")
    assert caught.value.name == "NotAdmitted"
    sent = await authority.admit(alice.pubkey())
    assert names(sent) == ["ParticipantAdmitted"]
    await world.join(authority.at, "alice")


async def test_money_and_keys_of_an_owner():
    world = World()
    at = (await world.create()).at
    owner, session = await world.join(at, "alice")
    sent = await owner.top_up_stake(SOL)
    assert sent.events[0].lamports == SOL
    new = key("session", "new")
    sent = await owner.set_session_key(new.pubkey(), 2 * SOL)
    assert sent.events[0].session == new.pubkey()
    assert sent.events[0].at_next_open is False
    assert world.balance(new.pubkey()) == 2 * SOL
    sent = await owner.set_endpoint("http://203.0.113.7:9000")
    assert names(sent) == ["EndpointSet"]
    found = await owner.client.read_participant(at.run, owner.key.pubkey())
    assert found.endpoint == "http://203.0.113.7:9000"
    sent = await owner.withdraw_stake(SOL)
    assert names(sent) == ["StakeUnbonding"]
    world.chain.advance(5_500)
    before = world.balance(owner.key.pubkey())
    sent = await owner.withdraw_stake()
    assert names(sent) == ["StakeWithdrawn"]
    assert world.balance(owner.key.pubkey()) == before + SOL - 5_000
    with pytest.raises(ProgramRefusedError) as caught:
        await owner.claim_reward()
    assert caught.value.name == "NothingToClaim"
    sent = await owner.leave_run()
    assert names(sent)[0] == "LeaveRequested"
    world.chain.advance(5_500)
    sent = await owner.withdraw_stake()
    assert "ParticipantClosed" in names(sent)
    assert await world.client.read_participant(at.run, owner.key.pubkey()) is None
    assert session.index == 0


async def test_a_round_and_what_follows_from_it():
    running = await World().start(3, checkpoint_every=1)
    client, at = running.world.client, running.at
    seen = await view(running)
    assert seen.run.phase == Phase.COMMIT
    assert seen.round.round == 0
    assert seen.round.members == 0b111
    assert seen.previous_round is None
    await play(running, 0)
    sent = await play(running, 1)
    assert "CheckpointStored" in names(sent)
    seen = await view(running)
    assert seen.run.round == 2
    assert seen.round.round == 2
    assert seen.previous_round.round == 1
    assert seen.previous_round.included == 0b111
    assert seen.slot == running.world.chain.slot
    checkpoint = await client.read_checkpoint(at.run, 1)
    assert checkpoint.round == 1
    assert checkpoint.root == GENESIS_ROOT
    assert [one.round for one in await client.find_checkpoints(at.run)] == [1]
    assert await client.read_checkpoint(at.run, 0) is None
    owner, session = running.peers[0]
    manifest = Manifest(1, b"m" * 32, "https://example.org/manifest.json")
    sent = await session.announce_manifest(owner.key.pubkey(), manifest)
    assert sent.events[0].uri == manifest.uri
    participant = await client.read_participant(at.run, owner.key.pubkey())
    assert participant.manifest_round == 1
    assert participant.manifest_hash == b"m" * 32
    sent = await running.crank.freeze_seed(0)
    assert names(sent) == ["SeedFrozen"]
    rounds = await client.read_rounds(at.run, [0, 1, 2, 3, 8])
    assert [one and one.round for one in rounds] == [0, 1, 2, None, None]
    assert rounds[0].seed_status == SeedStatus.FROZEN
    running.world.chain.advance(600)
    sent = await running.crank.retarget_seed(1)
    assert names(sent) == ["SeedRetargeted"]
    owners = [one.key.pubkey() for one, _session in running.peers]
    everyone = await client.read_participants(at.run, [*owners, Pubkey.new_unique()])
    assert [one and one.index for one in everyone] == [0, 1, 2, None]
    assert {one.index for one in await client.find_participants(at.run)} == {0, 1, 2}


async def test_a_snapshot_costs_one_call_while_the_round_stands():
    running = await World().start(2)
    calls = []
    ask = running.world.rpc.get_accounts

    async def counted(addresses):
        calls.append(list(addresses))
        return await ask(addresses)

    running.world.rpc.get_accounts = counted
    await view(running)
    del calls[:]
    await view(running)
    assert [len(call) for call in calls] == [4]
    await play(running, 0)
    del calls[:]
    await view(running)
    assert len(calls) <= 2
    assert (await view(running)).run.round == 1


async def test_a_transition_that_somebody_else_made_first_is_dropped():
    """The carried `advance_phase` comes too late; the commit under it must land all the same."""
    running = await World().start(3)
    _owner, session = running.peers[0]
    advance = make.advance_phase(running.at, session.key.pubkey(), 0)
    root_vote = running.vote(0, 0, GENESIS_ROOT)
    sent = await session.commit_payload(0, b"h" * 32, root_vote, [advance])
    assert names(sent) == ["PayloadCommitted"]
    assert (await view(running)).round.committed == 1
    with pytest.raises(ProgramRefusedError) as caught:
        await session.commit_payload(0, b"h" * 32, root_vote, [advance])
    assert caught.value.instruction == 0


async def test_the_last_commit_carries_the_tick():
    running = await World().start(2)
    sent = await commit_all(running, 0)
    assert names(sent)[0] == "PayloadCommitted"
    assert (await view(running)).run.phase == Phase.ATTEST


async def test_reporting_a_missing_payload_and_closing_void():
    running = await World().start(4)
    await play(running, 0)
    for number in range(2):
        _owner, session = running.peers[number]
        sent = await session.report_missing(0, 3)
    assert "PayloadStruck" in names(sent)
    sent = await running.crank.close_void(1)
    assert "RoundClosed" in names(sent)


async def test_late_joiner_is_activated():
    running = await World().start(2)
    owner, session = await running.world.join(running.at, "late")
    await session.post_ready(0, vote(running.at, owner, 0, GENESIS_ROOT))
    await play(running, 0)
    sent = await running.crank.activate(session.index, 0)
    assert names(sent) == ["Activated"]


async def test_pause_resume_and_parameters():
    running = await World().start(2)
    authority = running.authority
    sent = await authority.pause_run()
    assert names(sent) == ["PauseRequested"]
    await play(running, 0)
    assert (await view(running)).run.phase == Phase.PAUSED
    running.world.chain.advance(10)
    sent = await authority.resume_run()
    assert names(sent)[0] == "RunResumed"
    with pytest.raises(ProgramRefusedError) as caught:
        await running.crank.resume_run(1)
    assert caught.value.name == "NotPaused"
    params = running.world.terms(attest_slots=90).params
    sent = await authority.update_params(params)
    assert sent.events[0].params == params
    assert sent.events[0].params.admission is Admission.OPEN


async def test_the_end_of_a_run():
    """Cooldown, rewards, withdrawals, and every account closed with its rent back."""
    running = await World().start(2, max_rounds=1)
    world, at = running.world, running.at
    await play(running, 0)
    assert (await view(running)).run.phase == Phase.COOLDOWN
    for number, (_owner, session) in enumerate(running.peers):
        await session.vote_root(1, running.vote(number, 1, b"e" * 32))
    sent = await running.crank.close_round((await view(running)).run, b"e" * 32)
    assert "CheckpointStored" in names(sent)
    assert (await view(running)).run.phase == Phase.FINISHED
    world.chain.advance(8_000)
    for owner, _session in running.peers:
        sent = await owner.claim_reward()
        assert sent.events[-1].lamports > 0
        await owner.leave_run()
    world.chain.advance(5_500)
    for owner, _session in running.peers:
        await owner.withdraw_stake()
    me = running.authority.key.pubkey()
    rounds = [at.round(position) for position in range(at.ring)]
    pairs = [(address, me) for address in (*rounds, at.checkpoint(1))]
    for start in range(0, len(pairs), 5):
        sent = await running.crank.close_run(pairs[start : start + 5])
    if world.chain.accounts.of_program(at.program):
        sent = await running.crank.close_run([])
    assert names(sent)[-1] == "RunClosed"
    assert world.chain.accounts.of_program(at.program) == []


def test_every_instruction_has_a_builder_of_its_name():
    """The modules that callers import name every instruction, and otherwise helpers only."""
    faces = (make, audit_instructions, case_instructions)
    offered = {
        name for face in faces for name in face.__all__ if inspect.isfunction(getattr(face, name))
    }
    helpers = {"build", "with_accounts", "is_checkpoint_due"}
    special = {"vote_root", "commit_vote", "reveal_vote"}
    assert helpers | special < offered
    assert offered - helpers - special == set(program_codec().instructions)


def test_flags_are_those_of_the_idl():
    at = RunAddresses.create(key("authority").pubkey(), b"r" * 32, 8)
    me = key("me").pubkey()
    built = make.close_round(at, me, 3, b"c" * 32, with_checkpoint=False)
    spec = program_codec().instructions["close_round"]
    flags = [(meta.is_signer, meta.is_writable) for meta in built.accounts]
    expected = [(slot.signer, slot.writable) for slot in spec.accounts]
    # An absent optional account is the program's own id, neither signer nor writable.
    place = next(n for n, slot in enumerate(spec.accounts) if slot.name == "checkpoint")
    assert built.accounts[place].pubkey == at.program
    assert not built.accounts[place].is_signer
    assert not built.accounts[place].is_writable
    del flags[place], expected[place]
    assert flags == expected
    assert bytes(built.data) == spec.discriminator + (3).to_bytes(8, "little") + b"c" * 32


def test_arguments_that_no_transaction_can_carry():
    at = RunAddresses.create(key("authority").pubkey(), b"r" * 32, 8)
    session = Session(None, at, key("s"), 1 << 16)
    with pytest.raises(ArtifactError):
        make.attest(at, session.key.pubkey(), session.index, 0, 1, POSSESSION)
    with pytest.raises(ArtifactError):
        make.attest(at, session.key.pubkey(), 1, 0, 1, bytes(63))
