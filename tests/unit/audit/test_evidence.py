"""Evidence: only what the chain names is judged, on the data that the chain assigned."""

from dataclasses import replace

import pytest
from support import opened
from support.audit_driver import AUDIT, INDEX, ROUND, AuditDriver, closed_round, view_at
from support.audit_views import audit_view

from troth_attestation.header import header_hash
from troth_attestation.state import data_root
from troth_client.audit.evidence import assigned_sequences, find_submission
from troth_coordinator.rules.assignment import SequenceOrder

WITNESS = 1
AUDITED = audit_view(header_hash=header_hash(AUDIT.header))


@pytest.fixture
async def driver(tmp_path):
    one = AuditDriver(tmp_path, index=WITNESS)
    yield one
    await one.close()


async def test_the_submission_on_disk_is_used_where_it_is_the_audited_one(driver):
    saved = driver.save_payload()
    found = await find_submission(driver.witness, view_at(), AUDITED, INDEX)
    assert found == saved


async def test_a_submission_that_a_fork_took_back_is_not_judged(driver):
    driver.save_payload()
    other = opened.opened(ROUND, INDEX, 7, b"t" * 32)
    named = replace(other.header, salt=b"z" * 32)
    audit = audit_view(header_hash=header_hash(named))
    assert await find_submission(driver.witness, view_at(), audit, INDEX) is None


async def test_a_submission_that_left_the_ring_and_the_disk_is_out_of_reach(driver):
    driver.node.rounds = {}
    assert await find_submission(driver.witness, view_at(), audit_view(), INDEX) is None


ORDER = SequenceOrder(100, b"m" * 32)
IDS = [ORDER.sequences(700 + 2 * rank, 2) for rank in range(6)]
"""The sequences that ranks 0 to 5 of round 9 have to take."""


async def test_the_chain_says_on_which_data_the_work_must_be_whatever_the_header_says(driver):
    """The target signed the data root of another rank, and copied that trainer's gradient."""
    driver.node.rounds[ROUND] = closed_round(cursor=700)
    copied = replace(AUDIT.header, data_root=data_root(IDS[2]))
    await driver.tracker.refresh(view_at(round_=ROUND))
    unread = await assigned_sequences(driver.witness, audit_view(), copied, 700)
    assert unread == IDS[INDEX]
    await driver.tracker.refresh(view_at(sequence=2))
    assert driver.tracker.round(ROUND) is not None
    known = await assigned_sequences(driver.witness, audit_view(), copied, 700)
    assert known == IDS[INDEX]


@pytest.mark.parametrize(
    ("root", "expected"), [(data_root(IDS[3]), IDS[3]), (b"?" * 32, IDS[0])], ids=["named", "none"]
)
async def test_beyond_the_ring_the_header_names_the_data_and_no_rank_is_a_mismatch(
    driver, root, expected
):
    """Judges that said nothing about a false data root would pay for their silence."""
    driver.node.rounds = {}
    header = replace(AUDIT.header, data_root=root)
    assert await assigned_sequences(driver.witness, audit_view(), header, 700) == expected
