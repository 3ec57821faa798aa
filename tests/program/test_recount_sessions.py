"""The session key with which an auditor expects a header to be signed."""

from support.program.audits import MISMATCH
from support.program.cases import PAYLOAD, CaseDriver
from support.program.rounds import SOL, key

from troth_audit.replay.told import Told
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.event_types_rounds import RoundClosed
from troth_coordinator.rules.view import Status

JAILED = 5


def jailed_in_mid_round() -> CaseDriver:
    """Two strikes for payloads that it missed, and a third one for vouching, during Commit."""
    driver = CaseDriver(12, commit_slots=1_500, vesting_slots=9_000, unbond_slots=9_000)
    driver.start()
    for _ in range(2):
        driver.commit_all()
        driver.attest_all(bitmap=driver.open.committed & ~(1 << JAILED))
        driver.close()
        driver.chain.advance()
    driver.play(1)
    driver.challenge(driver.outsider("challenger"), 2, 6, PAYLOAD)
    return driver


def change_key(driver: CaseDriver, name: str) -> bytes:
    owner, session = driver.owners[JAILED], key(name)
    driver.chain.airdrop(session.pubkey(), SOL)
    change = life.set_session_key(driver.at, owner.pubkey(), session.pubkey())
    assert not driver.send(change, owner).event("SessionKeySet").at_next_open
    driver.sessions[JAILED] = session
    return bytes(session.pubkey())


def expected_at(driver: CaseDriver, round_: int) -> bytes:
    """The key that the events before the close of a round tell of."""
    told = Told(driver.params.residual_rounds)
    for event in driver.ledger.events:
        if isinstance(event, RoundClosed) and event.round == round_:
            break
        told.take(event)
    assert told.newest is not None
    return told.newest.members[JAILED].session


def test_somebody_jailed_before_its_commit_signs_with_its_new_key() -> None:
    driver = jailed_in_mid_round()
    driver.decide(driver.case(2, 6, PAYLOAD), MISMATCH)
    assert driver.entries[JAILED].status == Status.JAILED
    round_, new = driver.run.round, change_key(driver, "new session")
    driver.play(1)
    assert driver.round(round_).included >> JAILED & 1
    assert expected_at(driver, round_) == new


def test_somebody_jailed_after_its_commit_has_signed_with_its_old_key() -> None:
    driver = jailed_in_mid_round()
    round_, old = driver.run.round, bytes(driver.sessions[JAILED].pubkey())
    driver.commit(JAILED)
    driver.decide(driver.case(2, 6, PAYLOAD), MISMATCH)
    change_key(driver, "new session")
    driver.commit_all([one for one in driver.trainers() if one != JAILED])
    driver.attest_all()
    driver.close()
    assert expected_at(driver, round_) == old
