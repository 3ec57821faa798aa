"""A finished run whose clients have all stopped: a stranger closes it, to the last account."""

import re
from typing import Any

from solders.account import Account
from solders.keypair import Keypair
from support.fields import assert_fields
from support.program.audits import MISMATCH, OK
from support.program.cases import PAYLOAD, CaseDriver
from support.program.losses import REWARD
from support.runs import Chronicle

from troth_attestation.quorum import CaseOutcome
from troth_cli.errors import OtherRunError
from troth_cli.view.closing import closed_blocks, closing_values
from troth_cli.workflows.close import close_accounts
from troth_cli.workflows.settle import pay_out, settle_audits
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.rules.audit_view import AuditFlag, AuditStage
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.phase import Phase
from troth_localnet.direct import DirectRpc

PATIENT = {"commit_slots": 1_000, "vesting_slots": 9_000, "unbond_slots": 9_000}
TARGET = 3
ENOUGH_CALLS = 12


async def at_once(_seconds: float) -> None:
    """On this chain a sent transaction has landed."""


def finished(driver: CaseDriver) -> CaseDriver:
    driver.cool_down()
    assert driver.run.phase == Phase.FINISHED
    return driver


class Stranger:
    """Somebody with a little money and no part in the run, who calls `troth run close`."""

    def __init__(self, driver: CaseDriver) -> None:
        self.driver = driver
        self.key: Keypair = driver.outsider("stranger")
        self.client = CoordinatorClient(DirectRpc(driver.chain), sleeper=at_once)
        self.events: list[Any] = []

    async def close(self) -> int | None:
        """Call it once. Returns the slot after which the refusal says to call it again."""
        driver, told = self.driver, Chronicle(self.driver)
        try:
            await close_accounts(self.client, driver.at.run, self.key)
        except OtherRunError as error:
            found = re.search(r"after slot (\d+)", error.next_step)
            return int(found[1]) if found else None
        else:
            return None
        finally:
            driver.chain.observers.remove(told)
            driver.ledger.absorb(told.events)
            driver._check_books()
            self.events += told.events

    def told(self, name: str) -> list[Any]:
        return [event for event in self.events if event.name == name]

    async def close_when_told(self) -> None:
        """Call it again each time that the refusal names, until it names none."""
        for _ in range(ENOUGH_CALLS):
            slot = await self.close()
            if slot is None:
                assert self.driver.run.num_audits == 0
                return
            assert slot >= self.driver.slot, "a time that is past is no reason to wait"
            self.driver.chain.advance(slot + 1 - self.driver.slot)
        raise AssertionError(f"{self.driver.run.num_audits} audits are still open")


def everybody_takes_its_money(driver: CaseDriver) -> None:
    """The owners come back with their wallets, long after, and take what is left of theirs."""
    for index in range(len(driver.owners)):
        driver.leave(index)
    driver.chain.advance(2 * driver.params.unbond_slots + driver.params.vesting_slots)
    for index, owner in enumerate(driver.owners):
        entry = driver.entries[index]
        if entry.claimable or any(entry.bucket_amount):
            driver.send(life.claim_reward(driver.at, owner.pubkey()), owner)
        driver.send(life.withdraw_stake(driver.at, owner.pubkey(), 0), owner)


def two_convictions() -> CaseDriver:
    """Two forged rounds of one trainer are found, and every client stops before a case is decided.

    The second conviction waits until the first one stands. No client is left to decide it.
    """
    driver = CaseDriver.started(12, 2, max_rounds=2, join_until_round=2, **PATIENT)
    driver.draw(0)
    for round_ in (0, 1):
        driver.voted(round_, TARGET)
    return finished(driver)


async def test_a_conviction_that_waits_for_another_one_does_not_keep_a_run_open():
    driver = two_convictions()
    stranger = Stranger(driver)
    await stranger.close_when_told()
    first, second = stranger.told("CaseSettled")
    assert_fields(first, round=0, outcome=CaseOutcome.CONVICTED)
    assert_fields(second, round=1, outcome=CaseOutcome.CONVICTED, unvested=REWARD)
    assert second.flags & AuditFlag.FURTHER
    assert [closed.round for closed in stranger.told("AuditClosed")] == [0, 1]

    everybody_takes_its_money(driver)
    assert await stranger.close() is None
    assert not driver.chain.accounts.of_program(driver.at.program)


async def test_the_end_of_a_demo_waits_for_the_appeal_of_each_conviction():
    """The council reversed the first one, so the second one takes the stake in its place."""
    driver = two_convictions()
    driver.settle_case(driver.case(0, TARGET))
    now = driver.case(0, TARGET)
    driver.appeal(now)
    driver.run_to(now.appeal_end)
    driver.reverse(now)
    stranger, told = Stranger(driver), Chronicle(driver)

    async def pause() -> None:
        """Almost the longest time in which nothing is due: each conviction may take that long."""
        driver.chain.advance(longest_settlement_slots(driver.params) - 1)

    sent = [one async for one in pay_out(stranger.client, driver.at, stranger.key, pause)]
    closed = [event.round for one in sent for event in one.events if event.name == "AuditClosed"]
    assert closed == [event.round for event in told.named("AuditClosed")] == [0, 1]
    assert driver.run.total_escrow == 0


async def test_a_step_that_somebody_else_took_first_is_no_failure():
    driver = two_convictions()
    stranger, rival = Stranger(driver), Stranger(driver)
    look = stranger.client.find_audits
    theirs = []

    async def look_and_be_late(run):
        found = await look(run)
        theirs.extend(await settle_audits(rival.client, driver.at, rival.key))
        return found

    stranger.client.find_audits = look_and_be_late
    slot = await stranger.close()
    assert slot == driver.case(0, TARGET).case_end
    assert [event.name for sent in theirs for event in sent.events] == ["CaseSettled"]
    assert len(stranger.told("CaseSettled")) == 1


async def test_audits_that_clients_left_in_any_stage_end_all_the_same():
    """One audit was only asked for, others wait for openings, verdicts, a jury, votes."""
    driver = CaseDriver.started(12, 1, max_rounds=2, join_until_round=2, **PATIENT)
    driver.commit_all()
    driver.request(0)
    for target in (1, 2, 3, 4, 5):
        driver.open_audit(0, target) if target == 1 else driver.post(0, target)
    driver.take_verdicts(0, 3, [OK, OK, OK])
    for target in (4, 5):
        driver.take_verdicts(0, target, [MISMATCH] * 3)
        driver.extend(0, target)
        driver.take_verdicts(0, target, [MISMATCH] * 2)
        driver.settle(0, target)
    driver.seat_jury(driver.case(0, 5))
    driver.attest_all()
    driver.close()
    stages = {audit.target: audit.stage for audit in finished(driver).audits}
    assert stages == {
        0: AuditStage.REQUESTED,
        1: AuditStage.OPENINGS,
        2: AuditStage.COMMIT,
        3: AuditStage.REVEAL,
        4: AuditStage.ACCUSED,
        5: AuditStage.CASE_COMMIT,
    }
    assert driver.run.seeds_pending, "nobody has frozen the seed that the request waits for"
    # The seed slot of the last round is long past: a later one must be named first.
    driver.chain.advance(600)
    stranger = Stranger(driver)
    await stranger.close_when_told()
    assert len(stranger.told("AuditClosed")) == 6
    assert len(stranger.told("SeedRetargeted")) == len(stranger.told("SeedFrozen")) == 1


async def test_owners_that_withdraw_before_they_claim_are_closed_in_whole_batches():
    """Each leaves an account to whoever closes the run, which costs more than a round does."""
    driver = finished(CaseDriver.started(12, 2, max_rounds=2, join_until_round=2))
    for index in range(len(driver.owners)):
        driver.leave(index)
    driver.chain.advance(2 * driver.params.unbond_slots + driver.params.vesting_slots)
    for owner in driver.owners:
        driver.send(life.withdraw_stake(driver.at, owner.pubkey(), 0), owner)
        driver.send(life.claim_reward(driver.at, owner.pubkey()), owner)
    assert driver.run.num_participants == 12
    assert await Stranger(driver).close() is None
    assert not driver.chain.accounts.of_program(driver.at.program)


async def test_what_one_owner_has_not_claimed_keeps_only_its_own_account_open():
    """It left, joined at another index, and was paid as a juror of its first membership."""
    small = {"ring": 4, "keep_rounds": 2, "pool": 0, "max_rounds": 7, "join_until_round": 7}
    driver = CaseDriver.started(8, **small, **PATIENT)
    driver.challenge(driver.outsider("challenger"), 0, 3, PAYLOAD)
    driver.leave(5)
    driver.play(driver.params.ring + 1)
    terms = life.JoinTerms(8, 3, driver.outsider("again").pubkey(), "http://again")
    back = driver.owners[5]
    driver.send(life.join_run(driver.at, back.pubkey(), terms), back)
    driver.decide(driver.case(0, 3, PAYLOAD), MISMATCH)
    driver.release(driver.case(0, 3, PAYLOAD))
    driver.play(7 - driver.run.round)
    finished(driver)
    for owner in driver.owners:
        if driver.chain.accounts.get(driver.at.participant(owner.pubkey())) is None:
            continue
        driver.send(life.leave_run(driver.at, owner.pubkey()), owner)
    driver.chain.advance(3 * (driver.params.unbond_slots + driver.params.vesting_slots))
    for owner in driver.owners:
        entry = driver.entries[driver.owners.index(owner)]
        if owner is not back and (entry.claimable or any(entry.bucket_amount)):
            driver.send(life.claim_reward(driver.at, owner.pubkey()), owner)
        driver.send(life.withdraw_stake(driver.at, owner.pubkey(), 0), owner)
    assert any(driver.entries[5].bucket_amount) and driver.run.num_participants == 1
    stranger = Stranger(driver)
    await stranger.close()
    assert driver.run.num_rounds == driver.run.num_checkpoints == 0

    driver.send(life.claim_reward(driver.at, back.pubkey()), back)
    assert await stranger.close() is None
    assert not driver.chain.accounts.of_program(driver.at.program)


def write_total_withheld(driver: CaseDriver, lamports: int) -> None:
    """Change the account of the run, as a program with a fault would."""
    held, layout = driver.chain.accounts.get(driver.at.run), program_layout()
    at = 8 + layout.field("Run", "total_withheld").offset
    data = held.data[:at] + lamports.to_bytes(8, "little") + held.data[at + 8 :]
    changed = Account(held.lamports, data, held.owner, held.executable, held.rent_epoch)
    driver.chain.accounts.set(driver.at.run, changed)


async def test_a_run_that_stays_is_not_called_closed():
    """A fault of the program: it holds a reward that nobody waits for, so it keeps the run.

    Nobody is owed anything, and the command used to infer from that that the run was gone.
    """
    driver = finished(CaseDriver.started(12, 2, max_rounds=2, join_until_round=2))
    stranger = Stranger(driver)
    await stranger.close_when_told()
    everybody_takes_its_money(driver)
    write_total_withheld(driver, 1_000)
    driver.chain.airdrop(driver.at.vault, 1_001)  # one lamport more: something to pay out
    done, sent = await close_accounts(stranger.client, driver.at.run, stranger.key)
    assert not done.owed and driver.run.num_participants == 0
    assert not closing_values(done, sent)["is_closed"]
    assert "still there" in str(closed_blocks(done, sent)[-1])

    write_total_withheld(driver, 0)
    done, sent = await close_accounts(stranger.client, driver.at.run, stranger.key)
    assert closing_values(done, sent)["is_closed"]
    assert not driver.chain.accounts.of_program(driver.at.program)
