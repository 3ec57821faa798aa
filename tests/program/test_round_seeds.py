"""Seeds: frozen from SlotHashes, the same whoever asks and whenever; lost twice: no audit."""

import hashlib

from program.rounds import Stage
from program.test_round_refusals import swapped
from solders.account import Account
from solders.pubkey import Pubkey

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import SeedStatus

SLOT_HASHES = Pubkey.from_string("SysvarS1otHashes111111111111111111111111111")


def closed(**changes: int | str) -> Stage:
    """A run whose round 0 has closed in this slot."""
    stage = Stage(2, **changes)
    stage.start()
    stage.commit_all()
    stage.attest_all()
    stage.close()
    return stage


def freeze(stage: Stage) -> str:
    made = make.freeze_seed(stage.at, stage.cranker.pubkey(), 0)
    return stage.refused(made, stage.cranker)


def retarget(stage: Stage) -> str:
    made = make.retarget(stage.at, stage.cranker.pubkey(), 0)
    return stage.refused(made, stage.cranker)


def hash_at(stage: Stage, slot: int) -> tuple[int, bytes]:
    """The first listed slot at or after `slot`, by hand."""
    listed = [(s, bytes(h)) for s, h in stage.chain.blocks.slot_hashes() if s >= slot]
    return min(listed)


def test_the_seed_is_the_hash_of_the_named_slot() -> None:
    stage = closed()
    wanted = stage.round(0).seed_slot
    assert wanted == stage.slot + stage.params.seed_delay_slots
    assert freeze(stage) == "SeedTooEarly"
    stage.chain.advance(wanted - stage.slot)
    assert freeze(stage) == "SeedTooEarly", "a slot's hash is listed once the slot is over"
    stage.chain.advance()
    assert retarget(stage) == "SeedNotLost"
    event = stage.freeze(0).event("SeedFrozen")
    slot, slot_hash = hash_at(stage, wanted)
    view = stage.round(0)
    assert (event.found_slot, slot) == (wanted, wanted)
    assert view.slot_hash == slot_hash
    assert view.seed == H("troth:sigma", slot_hash, bytes(stage.at.run), u64(0))
    assert view.seed_status == SeedStatus.FROZEN
    assert stage.run.seeds_pending == 0
    assert freeze(stage) == "SeedNotPending"
    assert retarget(stage) == "SeedNotPending"


def test_the_result_depends_neither_on_the_caller_nor_on_the_moment() -> None:
    seeds = []
    for delay in (1, 7, 100, 500):
        stage = closed()
        wanted = stage.round(0).seed_slot
        stage.chain.advance(wanted - stage.slot + delay)
        caller = stage.owners[delay % 2]
        stage.send(make.freeze_seed(stage.at, caller.pubkey(), 0), caller)
        seeds.append(stage.round(0).seed)
    assert len(set(seeds)) == 1


def test_a_skipped_slot_gives_the_next_one() -> None:
    stage = closed()
    wanted = stage.round(0).seed_slot
    stage.chain.advance(wanted - 1 - stage.slot)
    stage.chain.skip(3)
    stage.chain.advance(2)
    event = stage.freeze(0).event("SeedFrozen")
    assert (event.seed_slot, event.found_slot) == (wanted, wanted + 3)
    assert event.slot_hash == hash_at(stage, wanted)[1]


def test_a_lost_seed_is_retargeted_once_then_the_round_has_no_audit() -> None:
    stage = closed(keep_rounds=2)
    assert stage.run.phase == Phase.COMMIT
    stage.chain.advance(600)
    assert freeze(stage) == "SeedSlotLost"
    again = make.retarget(stage.at, stage.cranker.pubkey(), 0)
    event = stage.send(again, stage.cranker).event("SeedRetargeted")
    assert event.seed_slot == stage.slot + stage.params.seed_delay_slots
    assert stage.round(0).seed_status == SeedStatus.RETARGETED
    assert freeze(stage) == "SeedTooEarly"
    assert retarget(stage) == "SeedNotLost"
    stage.chain.advance(600)
    assert freeze(stage) == "SeedSlotLost"
    assert stage.send(again, stage.cranker).names() == ["SeedLost"]
    view = stage.round(0)
    assert (view.seed_status, view.seed) == (SeedStatus.LOST, bytes(32))
    assert retarget(stage) == "SeedNotPending"
    assert stage.run.seeds_pending == 0, "the run goes on"
    stage.commit_all([])
    stage.attest_all([])
    stage.close()
    assert stage.run.round == 2


def test_a_retargeted_seed_freezes_like_a_first_one() -> None:
    stage = closed()
    stage.chain.advance(600)
    stage.send(make.retarget(stage.at, stage.cranker.pubkey(), 0), stage.cranker)
    wanted = stage.round(0).seed_slot
    stage.chain.advance(20)
    assert stage.freeze(0).event("SeedFrozen").found_slot == wanted


def test_a_fake_sysvar_account_is_refused() -> None:
    """The attacker copies the sysvar into an account of its own, with hashes that suit it."""
    stage = closed()
    stage.chain.advance(10)
    wanted = stage.round(0).seed_slot
    fake = Pubkey.from_bytes(hashlib.sha256(b"fake sysvar").digest())
    entries = [(wanted + 1, b"a" * 32), (wanted, b"b" * 32), (wanted - 1, b"c" * 32)]
    data = len(entries).to_bytes(8, "little")
    data += b"".join(slot.to_bytes(8, "little") + hash_ for slot, hash_ in entries)
    stage.chain.accounts.set(fake, Account(10**9, data, stage.at.program, False, 0))
    for made in (
        make.freeze_seed(stage.at, stage.cranker.pubkey(), 0),
        make.retarget(stage.at, stage.cranker.pubkey(), 0),
    ):
        wrong = swapped(made, SLOT_HASHES, fake)
        assert stage.refused(wrong, stage.cranker) == "WrongSysvar"


def test_the_account_of_another_round_is_refused() -> None:
    stage = closed()
    stage.chain.advance(10)
    good = make.freeze_seed(stage.at, stage.cranker.pubkey(), 0)
    wrong = swapped(good, stage.at.round(0), stage.at.round(1))
    assert stage.refused(wrong, stage.cranker) == "WrongRoundAccount"
    unopened = make.freeze_seed(stage.at, stage.cranker.pubkey(), NONE)
    assert stage.refused(unopened, stage.cranker) in {"WrongRoundAccount", "SeedNotPending"}


def test_a_void_round_has_no_seed() -> None:
    stage = Stage(2)
    stage.start()
    stage.commit_all([])
    stage.attest_all([])
    stage.close()
    stage.chain.advance(10)
    assert freeze(stage) == "SeedNotPending"
    assert retarget(stage) == "SeedNotPending"


def test_seeds_freeze_while_the_run_is_paused() -> None:
    stage = Stage(2)
    stage.start()
    stage.commit_all()
    stage.attest_all()
    stage.send(make.pause_run(stage.at, stage.authority.pubkey()), stage.authority)
    stage.close()
    assert stage.run.phase == Phase.PAUSED
    stage.chain.advance(10)
    stage.freeze(0)
