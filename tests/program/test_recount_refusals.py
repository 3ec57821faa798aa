"""A history in which the program allowed what it refuses: every such act is found, by its rule.

The other way round: honest runs of every driver pass through the same checks.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from support.fields import assert_fields
from support.program.cases import PAYLOAD, CaseDriver
from support.program.forged import FORGED, STRANGER, departed, joined, then, without
from support.program.recounted import checked
from support.program.rounds import RoundDriver

from troth_audit.replay.findings import Rule
from troth_audit.replay.recount_refusals import REFUSALS, Refusal
from troth_coordinator.chain import event_types_audits as of_audits
from troth_coordinator.chain import event_types_rounds as of_rounds
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.event_base import Event
from troth_coordinator.rules.ids import NO_INDEX
from troth_coordinator.rules.seeds import SLOT_HASHES_LISTED, jury_seed_slot, round_seed_slot

ROOT = Path(__file__).parents[2]
KNOWN: dict[tuple[str, str], Refusal] = {
    (kind.__name__, refusal.name): refusal for kind, all_ in REFUSALS.items() for refusal in all_
}


def expectations(events: Sequence[Event], rule: Rule) -> set[str]:
    """The expectations of the findings about these events under a rule."""
    return {one.expected for one in checked(events) if one.rule is rule}


def test_every_refusal_has_a_forgery() -> None:
    assert sorted(FORGED) == sorted(KNOWN)


@pytest.mark.parametrize(("event", "name"), sorted(KNOWN))
def test_an_act_that_the_program_refuses_is_found(event: str, name: str) -> None:
    refusal = KNOWN[event, name]
    assert refusal.expected in expectations(FORGED[event, name](), refusal.rule)


# Seeds.


def test_a_seed_is_lost_no_earlier_than_its_slot_can_have_left_the_list() -> None:
    driver = RoundDriver(5)
    driver.start()
    driver.play(1)
    events, first = list(driver.ledger.events), driver.round(0).seed_slot
    gone = first + SLOT_HASHES_LISTED
    second = round_seed_slot(driver.params, gone)
    retargeted = then(events, of_rounds.SeedRetargeted, round=0, seed_slot=second, slot=gone)
    lost = then(retargeted, of_rounds.SeedLost, round=0, slot=second + SLOT_HASHES_LISTED)
    assert expectations(lost, Rule.SEED) == set()
    end = second + SLOT_HASHES_LISTED
    early = then(events, of_rounds.SeedRetargeted, round=0, seed_slot=second - 1, slot=gone - 1)
    assert f"slot {gone} or more" in expectations(early, Rule.SEED)
    early = then(retargeted, of_rounds.SeedLost, round=0, slot=end - 1)
    assert expectations(early, Rule.SEED) == {f"slot {end} or more"}


def test_a_jury_is_given_up_no_earlier_than_its_slot_can_have_left_the_list() -> None:
    driver = CaseDriver.started(12)
    case = driver.accuse(0, 3)
    events, gone = list(driver.ledger.events), case.case_seed_slot + SLOT_HASHES_LISTED
    key: dict[str, Any] = {"round": 0, "target": 3, "audit_kind": case.kind}
    second = jury_seed_slot(driver.params, gone)
    again = {**key, "case_seed_slot": second}
    retargeted = then(events, of_audits.CaseSeedRetargeted, **again, slot=gone)
    end = second + SLOT_HASHES_LISTED
    lost = then(retargeted, of_audits.CaseSeedLost, **key, slot=end)
    assert expectations(lost, Rule.JURY) == set()
    too_early = then(retargeted, of_audits.CaseSeedLost, **key, slot=end - 1)
    assert expectations(too_early, Rule.JURY) == {f"slot {end} or more"}


def test_the_seeds_that_wait_are_those_of_the_run_account() -> None:
    driver = RoundDriver(4)
    driver.start()
    driver.play(2)
    recount = driver.ledger.recounted.recount
    assert recount is not None and driver.run.seeds_pending
    (found,) = recount.end(replace(driver.run, seeds_pending=0))
    assert_fields(found, rule=Rule.RUN_ACCOUNT, found="seeds_pending 0")


# Memberships.


def test_a_change_of_members_that_is_left_out_is_found_at_the_next_open() -> None:
    forged = without(departed(), "MembershipChanged", 0)
    assert "MembershipChanged before this open" in expectations(forged, Rule.PHASE)


def test_a_change_of_members_that_is_left_out_is_found_where_a_stretch_of_rounds_ends() -> None:
    driver = RoundDriver(4, max_rounds=3, join_until_round=3, checkpoint_every=1)
    driver.start()
    driver.play(2)
    driver.leave(3)
    driver.play(1)
    driver.cool_down()
    forged = without(driver.ledger.events, "MembershipChanged", 0)
    assert "MembershipChanged before this phase" in expectations(forged, Rule.PHASE)


def test_members_change_only_between_rounds() -> None:
    driver = RoundDriver(4)
    driver.start()
    driver.play(1)
    driver.leave(3)
    change = {"round": driver.run.round, "left": 1 << 3, "rotated": 0, "short": 0}
    forged = then(driver.ledger.events, of_rounds.MembershipChanged, **change)
    expected = "requests that take effect between rounds"
    assert expectations(forged, Rule.PHASE) == {expected}


def test_an_index_is_not_given_away_while_the_ring_has_rounds_of_its_owner() -> None:
    driver = RoundDriver(5, ring=20, keep_rounds=4, checkpoint_every=4, max_rounds=40)
    driver.start()
    driver.play(1)
    driver.leave(4)
    driver.play(1)
    driver.chain.advance(10_000)
    owner = driver.owners[4]
    driver.send(life.claim_reward(driver.at, owner.pubkey()), owner)
    events = driver.ledger.events
    assert expectations(joined(events, STRANGER, 5), Rule.VAULT) == set()
    assert expectations(joined(events, STRANGER, 4), Rule.VAULT) == {"an index that is free"}


def test_a_case_needs_three_that_may_judge_it() -> None:
    driver = CaseDriver.started(3)
    slot = driver.ledger.events[-1].slot
    claim = {"round": 0, "target": 1, "audit_kind": int(PAYLOAD), "subject": NO_INDEX}
    case = {
        **claim,
        "challenger": STRANGER,
        "challenger_index": NO_INDEX,
        "bond": driver.params.bond_lamports,
        "case_seed_slot": jury_seed_slot(driver.params, slot),
    }
    forged = then(driver.ledger.events, of_audits.CaseOpened, **case)
    assert expectations(forged, Rule.CASE) == {"3 witnesses that may judge"}


# All refusals of the program.

OTHER_CHECKS: dict[str, Sequence[str]] = {
    "recount_acts.py": (
        *("AlreadyAttested", "AlreadyCommitted", "AlreadyRequested", "AttestOutsideCommits"),
        *("AuditsOpen", "CasesMayBeOpen", "HeaderHashNotZero", "HeaderHashZero", "InvalidRoles"),
        *("IndexOutOfRange", "JoinClosed", "NotAMember", "NotATrainer", "PhaseOver"),
        *("PositionOutOfRange", "PossessionOutsideBitmap", "RequestsFull", "RootVoteZero"),
        *("RunFinished", "RunNotFinished", "WrongCheckpoint", "WrongPhase", "WrongRound"),
    ),
    "recount_phases.py": (
        *("AlreadyPaused", "NotPaused", "NothingDue", "PauseBudgetSpent", "PhaseNotOver"),
    ),
    "closes.py": ("CandidateNotCanonical", "CloseGraceRemaining"),
    "recount_life.py": ("IndexTaken", "RewardUnfunded", "RunFull", "StakeBelowMinimum"),
    "recount_members.py": (
        *("AlreadyActive", "NotReady", "ReadyRootMismatch", "ReturnsLater", "RoundHasNoRoot"),
        *("StakeTooLow", "StillJailed"),
    ),
    "recount_rounds.py": ("AlreadyReported", "NotIncluded", "ReportsClosed"),
    "recount_seeds.py": ("SeedNotLost", "SeedNotPending", "SeedTooEarly"),
    "recount_audits.py": (
        *("AlreadyAudited", "ExtensionDue", "ExtensionNotDue", "NotSampled", "NotSeated"),
        *("OpeningsPosted", "RevealMismatch", "SeatCommitted", "SeatNotCommitted"),
        *("SeatRevealed", "SeedNotFrozen", "UnknownVerdict", "WindowOpen", "WindowOver"),
        *("WrongStage", "ZeroSketch"),
    ),
    "recount_cases.py": (
        *("AlreadyConvicted", "CaseWindowOver", "CaseWithoutSubject", "ChallengesItself"),
        *("SketchNotNeeded", "TooFewWitnesses", "UnknownAuditKind"),
    ),
    "recount_sentence.py": (
        *("AlreadyAppealed", "AlreadyReversed", "ConvictionPending", "NotConvicted"),
        *("NotReversible", "SlashCapReached"),
    ),
    "parameters, by rules/params_checks.py, rules/params_update.py and their types": (
        *("AbsenceFeeTooLarge", "AmountTooLarge", "AuditCapOutOfRange", "BondTooLarge"),
        *("BondTooSmall", "CapacityOutOfRange", "ChanceOutOfRange", "ChanceTooSmall"),
        *("CountOutOfRange", "FeeTooLarge", "ImmutableParameter", "KeepRoundsTooFew"),
        *("KeepStakeOutOfRange", "MinMembersGrow", "MinMembersOutOfRange", "PauseTooLong"),
        *("RewardOutOfRange", "RingOutOfRange", "SeatLoadOutOfRange", "SeedDelayTooLong"),
        *("SketchFactorOutOfRange", "UnbondTooShort", "UnknownAdmission", "VestingTooShort"),
        *("WindowShrinks", "WindowTooLong", "WindowZero", "WitnessOnlyOutOfRange"),
    ),
}
"""Refusals that other files of the recount know."""
NOT_RECOUNTED: dict[str, Sequence[str]] = {
    "accounts that a transaction passes, which no event names": (
        *("AccountMissing", "CheckpointAccountMissing", "DuplicateAccount", "ParticipantMissing"),
        *("WrongAccountSize", "WrongAddress", "WrongChallenger", "WrongEventAuthority"),
        *("WrongIncinerator", "WrongProgram", "WrongRoster", "WrongRoundAccount", "WrongRun"),
        *("WrongSysvar", "WrongVault"),
    ),
    "who signed or paid a rent, which no event proves": (
        *("InsufficientFunds", "PauseBudgetRemaining", "WrongAuthority", "WrongCouncil"),
        *("WrongFunder", "WrongPayer", "WrongSessionKey"),
    ),
    "slot hashes, which nobody keeps: a chain that skips slots lists them for longer": (
        *("MalformedSlotHashes", "SeedSlotLost"),
    ),
    "texts and keys, which a participant chooses": ("InvalidSessionKey", "InvalidText"),
    "bytes and sizes that no event has": ("ReservedNotZero", "TooManyEvents"),
    "never expected; the vault and every total are recounted": (
        *("InvariantViolated", "MathOverflow", "VaultShort"),
    ),
}
"""Refusals that the events cannot show, each with the reason."""


def test_every_refusal_of_the_program_is_recounted_or_cannot_be() -> None:
    source = (ROOT / "programs" / "coordinator" / "src" / "errors.rs").read_text()
    known = {name for _, name in KNOWN}
    listed = [*known, *chain(*OTHER_CHECKS.values(), *NOT_RECOUNTED.values())]
    assert sorted(listed) == sorted(re.findall(r"^    ([A-Z]\w+),$", source, re.MULTILINE))
