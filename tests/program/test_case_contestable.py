"""The list of claims that a challenger could make is the program's own: each claim is tried."""

from collections.abc import Iterator

from support.program.audits import OK
from support.program.cases import CLEARED, PAYLOAD, POSSESSION, WORK, CaseDriver

from troth_attestation.contestable import contestable, slots_left
from troth_coordinator.chain.case_instructions import NO_SUBJECT
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import ProgramRefusedError
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.audit_view import AuditKind
from troth_localnet.direct import DirectRpc

NUM = 6
Tried = tuple[int, int, int, int]
"""Round, target, kind, subject."""


def tries(driver: CaseDriver) -> Iterator[Tried]:
    for round_ in range(driver.run.round + 1):
        for target in range(NUM + 1):
            for kind in AuditKind:
                subjects = range(NUM) if kind == POSSESSION else (NO_SUBJECT,)
                yield from ((round_, target, int(kind), subject) for subject in subjects)


async def accepted(driver: CaseDriver) -> set[Tried]:
    """The claims that the program takes from a stranger now."""
    client = CoordinatorClient(DirectRpc(driver.chain))
    stranger, found = driver.outsider("challenger"), set()
    for one in tries(driver):
        round_, target, kind, subject = one
        claim = driver.challenge_instruction(stranger, round_, target, AuditKind(kind), subject)
        try:
            await client.simulate([claim], [stranger])
        except ProgramRefusedError:
            continue
        found.add(one)
    return found


async def listed(driver: CaseDriver) -> set[Tried]:
    """The claims that we list for a stranger."""
    client, run = CoordinatorClient(DirectRpc(driver.chain)), driver.at.run
    view = await client.snapshot(run)
    rounds = await client.read_rounds(run, range(view.run.round + 1))
    found = contestable(view, rounds, await client.find_audits(run))
    return {
        (*one.key, subject)
        for one in found
        for subject in (bitmap.indices_of(one.subjects) if one.subjects else (NO_SUBJECT,))
    }


async def agree(driver: CaseDriver) -> set[Tried]:
    found = await accepted(driver)
    assert await listed(driver) == found
    return found


async def test_payload_root_and_possession_can_be_contested_and_cleared_work_too():
    driver = CaseDriver.started(NUM, 2, case_slots=400)
    before = await agree(driver)
    assert {kind for _, _, kind, _ in before} == {1, 2, 3}, "no audit has ended yet"
    driver.judge(1, 2, CLEARED)
    after = await agree(driver)
    cleared = (1, 2, int(WORK), NO_SUBJECT)
    assert after - before == {cleared}


async def test_what_is_open_or_convicted_is_listed_no_more():
    driver = CaseDriver.started(NUM, 1, case_slots=1_200)
    payload, work = (0, 3, int(PAYLOAD), NO_SUBJECT), (0, 2, int(WORK), NO_SUBJECT)
    driver.challenge(driver.outsider("another"), 0, 3, PAYLOAD)
    assert payload not in await agree(driver)
    driver.judge(0, 2, CLEARED)
    driver.challenge(driver.outsider("another"), 0, 2, WORK)
    assert work not in await agree(driver)
    driver.decide(driver.case(0, 2), OK)
    assert work not in await agree(driver)


async def test_the_window_ends_when_the_program_says_so():
    driver = CaseDriver.started(NUM, 1, case_slots=300)
    client = CoordinatorClient(DirectRpc(driver.chain))
    view = await client.snapshot(driver.at.run)
    (round_,) = await client.read_rounds(driver.at.run, [0])
    left = slots_left(view, round_)
    driver.chain.advance(left - 1)
    assert await agree(driver), "the last slot"
    driver.chain.advance(1)
    assert await agree(driver) == set()


async def test_too_few_judges_leave_nothing_to_contest():
    driver = CaseDriver.started(NUM, 1, roles=(3, 3, 3, 1, 1, 1))
    found = await agree(driver)
    assert {target for _, target, _, _ in found} == {3, 4, 5}, "the witnesses judge the others"


async def test_a_challenger_that_takes_part_neither_accuses_nor_judges_itself():
    driver = CaseDriver.started(NUM, 1, roles=(3, 3, 3, 3, 1, 1))
    client, run = CoordinatorClient(DirectRpc(driver.chain)), driver.at.run
    view = await client.snapshot(run)
    rounds = await client.read_rounds(run, [0])
    found = contestable(view, rounds, [], challenger=0)
    assert {one.target for one in found} == {4, 5}, "of four witnesses two parties are too many"
