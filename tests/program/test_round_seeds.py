"""Seeds: frozen from SlotHashes, the same whoever asks and whenever; lost twice: no audit."""

import hashlib

from solders.account import Account
from solders.pubkey import Pubkey
from support.fields import assert_fields
from support.program.rounds import RoundDriver
from support.program.swapped import exchanged

from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import SeedStatus

SLOT_HASHES = Pubkey.from_string("SysvarS1otHashes111111111111111111111111111")


def closed(**changes: int | str) -> RoundDriver:
    """A run whose round 0 has closed in this slot."""
    driver = RoundDriver(2, **changes)
    driver.start()
    driver.commit_all()
    driver.attest_all()
    driver.close()
    return driver


def freeze(driver: RoundDriver) -> str:
    made = make.freeze_seed(driver.at, driver.cranker.pubkey(), 0)
    return driver.refused(made, driver.cranker)


def retarget_seed(driver: RoundDriver) -> str:
    made = make.retarget_seed(driver.at, driver.cranker.pubkey(), 0)
    return driver.refused(made, driver.cranker)


def hash_at(driver: RoundDriver, slot: int) -> tuple[int, bytes]:
    """The first listed slot at or after `slot`, by hand."""
    listed = [(s, bytes(h)) for s, h in driver.chain.blocks.slot_hashes() if s >= slot]
    return min(listed)


def test_the_seed_is_the_hash_of_the_named_slot() -> None:
    driver = closed()
    wanted = driver.round(0).seed_slot
    assert wanted == driver.slot + driver.params.seed_delay_slots
    assert freeze(driver) == "SeedTooEarly"
    driver.chain.advance(wanted - driver.slot)
    assert freeze(driver) == "SeedTooEarly", "a slot's hash is listed once the slot is over"
    driver.chain.advance()
    assert retarget_seed(driver) == "SeedNotLost"
    event = driver.freeze(0).event("SeedFrozen")
    slot, slot_hash = hash_at(driver, wanted)
    view = driver.round(0)
    assert event.found_slot == wanted
    assert slot == wanted
    assert view.slot_hash == slot_hash
    assert view.seed == H("troth:sigma", slot_hash, bytes(driver.at.run), u64(0))
    assert view.seed_status == SeedStatus.FROZEN
    assert driver.run.seeds_pending == 0
    assert freeze(driver) == "SeedNotPending"
    assert retarget_seed(driver) == "SeedNotPending"


def test_the_result_depends_neither_on_the_caller_nor_on_the_moment() -> None:
    seeds = []
    for delay in (1, 7, 100, 500):
        driver = closed()
        wanted = driver.round(0).seed_slot
        driver.chain.advance(wanted - driver.slot + delay)
        caller = driver.owners[delay % 2]
        driver.send(make.freeze_seed(driver.at, caller.pubkey(), 0), caller)
        seeds.append(driver.round(0).seed)
    assert len(set(seeds)) == 1


def test_a_skipped_slot_gives_the_next_one() -> None:
    driver = closed()
    wanted = driver.round(0).seed_slot
    driver.chain.advance(wanted - 1 - driver.slot)
    driver.chain.skip(3)
    driver.chain.advance(2)
    event = driver.freeze(0).event("SeedFrozen")
    assert_fields(event, seed_slot=wanted, found_slot=wanted + 3)
    assert event.slot_hash == hash_at(driver, wanted)[1]


def test_a_lost_seed_is_retargeted_once_then_the_round_has_no_audit() -> None:
    driver = closed(keep_rounds=2)
    assert driver.run.phase == Phase.COMMIT
    driver.chain.advance(600)
    assert freeze(driver) == "SeedSlotLost"
    again = make.retarget_seed(driver.at, driver.cranker.pubkey(), 0)
    event = driver.send(again, driver.cranker).event("SeedRetargeted")
    assert event.seed_slot == driver.slot + driver.params.seed_delay_slots
    assert driver.round(0).seed_status == SeedStatus.RETARGETED
    assert freeze(driver) == "SeedTooEarly"
    assert retarget_seed(driver) == "SeedNotLost"
    driver.chain.advance(600)
    assert freeze(driver) == "SeedSlotLost"
    assert driver.send(again, driver.cranker).names() == ["SeedLost"]
    view = driver.round(0)
    assert_fields(view, seed_status=SeedStatus.LOST, seed=bytes(32))
    assert retarget_seed(driver) == "SeedNotPending"
    assert driver.run.seeds_pending == 0, "the run goes on"
    driver.commit_all([])
    driver.attest_all([])
    driver.close()
    assert driver.run.round == 2


def test_a_retargeted_seed_freezes_like_a_first_one() -> None:
    driver = closed()
    driver.chain.advance(600)
    driver.send(make.retarget_seed(driver.at, driver.cranker.pubkey(), 0), driver.cranker)
    wanted = driver.round(0).seed_slot
    driver.chain.advance(20)
    assert driver.freeze(0).event("SeedFrozen").found_slot == wanted


def test_a_fake_sysvar_account_is_refused() -> None:
    """The attacker copies the sysvar into an account of its own, with hashes that suit it."""
    driver = closed()
    driver.chain.advance(10)
    wanted = driver.round(0).seed_slot
    fake = Pubkey.from_bytes(hashlib.sha256(b"fake sysvar").digest())
    entries = [(wanted + 1, b"a" * 32), (wanted, b"b" * 32), (wanted - 1, b"c" * 32)]
    data = len(entries).to_bytes(8, "little")
    data += b"".join(slot.to_bytes(8, "little") + hash_ for slot, hash_ in entries)
    driver.chain.accounts.set(fake, Account(10**9, data, driver.at.program, False, 0))
    for made in (
        make.freeze_seed(driver.at, driver.cranker.pubkey(), 0),
        make.retarget_seed(driver.at, driver.cranker.pubkey(), 0),
    ):
        wrong = exchanged(made, SLOT_HASHES, fake)
        assert driver.refused(wrong, driver.cranker) == "WrongSysvar"


def test_the_account_of_another_round_is_refused() -> None:
    driver = closed()
    driver.chain.advance(10)
    good = make.freeze_seed(driver.at, driver.cranker.pubkey(), 0)
    wrong = exchanged(good, driver.at.round(0), driver.at.round(1))
    assert driver.refused(wrong, driver.cranker) == "WrongRoundAccount"
    unopened = make.freeze_seed(driver.at, driver.cranker.pubkey(), NONE)
    assert driver.refused(unopened, driver.cranker) in {"WrongRoundAccount", "SeedNotPending"}


def test_a_void_round_has_no_seed() -> None:
    driver = RoundDriver(2)
    driver.start()
    driver.commit_all([])
    driver.attest_all([])
    driver.close()
    driver.chain.advance(10)
    assert freeze(driver) == "SeedNotPending"
    assert retarget_seed(driver) == "SeedNotPending"


def test_seeds_freeze_while_the_run_is_paused() -> None:
    driver = RoundDriver(2)
    driver.start()
    driver.commit_all()
    driver.attest_all()
    driver.send(make.pause_run(driver.at, driver.authority.pubkey()), driver.authority)
    driver.close()
    assert driver.run.phase == Phase.PAUSED
    driver.chain.advance(10)
    driver.freeze(0)
