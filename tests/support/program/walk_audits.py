"""Actions of a walk on audits and cases: honest, lazy, silent, late, and about the wrong thing.

Next: walk.py for the walk itself; cases.py for the driver.
"""

import random
from collections.abc import Callable

from solders.keypair import Keypair

from support.program.audits import CERTAIN, LAZY, MISMATCH, OK, TRUE, UNAVAILABLE, openings_of
from support.program.cases import CaseDriver
from support.program.rounds import key
from support.program.walk import (
    ACTIONS,
    SHORT,
    Action,
    Walk,
    freeze,
    join,
    leave,
    move_on,
    void,
    wait,
    wind_up,
)
from troth_attestation.cases import NO_SKETCH, Vote
from troth_attestation.quorum import CaseOutcome
from troth_attestation.sketch import Sketch, sketch_hash
from troth_attestation.verdict import Statement, VerdictKind
from troth_coordinator.chain import audit_instructions as audits
from troth_coordinator.chain import case_instructions as cases
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.audit_instructions import Reveal
from troth_coordinator.chain.case_instructions import NO_SUBJECT, Claim
from troth_coordinator.rules.audit_view import (
    AuditFlag,
    AuditKind,
    AuditStage,
    AuditView,
    SeatFlag,
)
from troth_coordinator.rules.ids import NONE
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

TRIED: dict[str, int] = {
    **SHORT,
    **CERTAIN,
    **{"capacity": 8, "ring": 8, "audit_cap": 8, "max_rounds": 12, "pool": 100_000},
    **{"rounds_per_epoch": 4, "seed_delay_slots": 2},
}
"""Everybody is sampled in every round."""


SPARE = 30_000
"""Stake of each participant beyond the minimum, so that one fault does not end a membership."""


class AuditWalk(Walk):
    """A walk through a run in which everybody is audited."""

    def __init__(self, seed: int) -> None:
        admission = "allowlist" if seed % 2 else "open"
        super().__init__(seed, CaseDriver(7, **TRIED, admission=admission))
        self.driver.chain.airdrop(key("council").pubkey(), 10**9)
        for owner in self.driver.owners[:7]:
            self.attempt(life.top_up_stake(self.driver.at, owner.pubkey(), SPARE), owner)


def said(audit: AuditView, index: int) -> tuple[VerdictKind, Sketch] | None:
    """The lasting answer of a judge in an audit; it differs between targets."""
    dice = random.Random(f"{audit.key} {index}")
    mood = random.Random(str(audit.key)).choice((OK, OK, OK, MISMATCH, MISMATCH, UNAVAILABLE))
    if audit.stage in (AuditStage.CASE_COMMIT, AuditStage.CASE_REVEAL):
        mood = random.Random(f"tried {audit.key}").choice((mood, mood, OK, UNAVAILABLE))
    if dice.random() < 0.06:
        return None
    kind = mood if dice.random() < 0.85 else dice.choice(tuple(VerdictKind))
    return kind, LAZY if dice.random() < 0.06 else TRUE


def tend(walk: Walk) -> None:
    """Everybody does what an audit asks for, or what it does not."""
    for audit in walk.driver.audits:
        if walk.dice.random() < 0.8:
            STEPS[AuditStage(audit.stage)](walk, audit)


def run_out(walk: Walk) -> None:
    """Move to the first moment after a window of some audit, then act."""
    audits = walk.driver.audits
    ends = [end for a in audits for end in (a.stage_end, a.appeal_end, a.case_end)]
    later = [end for end in ends if walk.clock <= end < 2**40]
    # A stage that nobody has touched since its end shows no end ahead: the next one has begun.
    wait = min(later) + 1 - walk.clock if later else walk.driver.params.jury_reveal_slots
    if audits:
        walk.driver.chain.advance(wait)
        tend(walk)


def oversleep(walk: Walk) -> None:
    """Nobody does anything until seed slots are forgotten, or until rewards have vested."""
    walk.driver.chain.advance(walk.dice.choice((600, 4_500)))


def recover(walk: Walk) -> None:
    """Participants slashed below the minimum top up and come back."""
    driver = walk.driver
    for index, entry in enumerate(driver.entries):
        owner = walk.known.get(entry.owner)
        missing = driver.run.params.min_stake_lamports + SPARE - entry.stake
        if owner is None or entry.status not in (Status.INACTIVE, Status.JAILED, Status.PENDING):
            continue
        if missing > SPARE:
            walk.attempt(life.top_up_stake(driver.at, owner.pubkey(), missing), owner)
        session, round_ = walk.session_of(index), driver.run.round
        vote = walk.vote(index, round_, walk.root())
        if entry.ready_round == NONE or walk.dice.random() < 0.1:
            walk.attempt(life.post_ready(driver.at, session.pubkey(), index, round_, vote), session)
        elif entry.ready_round < round_:
            cranker = driver.cranker
            built = life.activate(driver.at, cranker.pubkey(), index, entry.ready_round)
            walk.attempt(built, cranker)


def go(walk: Walk) -> None:
    """Those who may not come back yet leave instead, also in the middle of a round they serve."""
    for entry in walk.driver.entries:
        owner = walk.known.get(entry.owner)
        is_out = entry.status in (Status.INACTIVE, Status.JAILED)
        if is_out and owner is not None and walk.dice.random() < 0.5:
            walk.attempt(life.leave_run(walk.driver.at, owner.pubkey()), owner)


def open_sampled(walk: Walk) -> None:
    driver, who = walk.driver, walk.driver.cranker
    driver.chain.advance(driver.params.seed_delay_slots + 1)
    freeze(walk)
    for round_ in range(max(0, driver.run.round - 2), driver.run.round):
        held = driver.round(round_)
        due = held.sampled & ~held.audited
        for target in range(8):
            if walk.dice.random() < (0.6 if due >> target & 1 else 0.05):
                walk.attempt(audits.open_audit(driver.at, who.pubkey(), round_, target), who)
    tend(walk)


def request(walk: Walk) -> None:
    driver, who = walk.driver, walk.owner()
    if driver.run.phase != Phase.ATTEST and walk.dice.random() < 0.8:
        return
    asked = audits.request_audit(driver.at, who.pubkey(), driver.run.round, walk.index())
    walk.attempt(asked, who)


def challenge(walk: Walk) -> None:
    driver, who = walk.driver, walk.owner()
    round_ = max(0, driver.run.round - walk.dice.randrange(1, 4))
    has_begun = driver.run.round > 0
    included = driver.round(round_).included if has_begun else 0
    likely = [index for index in range(8) if included >> index & 1 or walk.dice.random() < 0.1]
    kind = walk.dice.choice(tuple(AuditKind))
    target, subject = (walk.dice.choice(likely or [walk.index()]) for _ in range(2))
    claim = Claim(round_, target, kind, subject if kind == AuditKind.POSSESSION else NO_SUBJECT)
    walk.attempt(cases.open_case(driver.at, who.pubkey(), claim), who)


def show(walk: Walk, audit: AuditView) -> None:
    session = walk.session_of(audit.target)
    root = openings_of(audit.round, audit.target)
    if random.Random(f"serves {audit.key}").random() < 0.9:
        posted = audits.post_openings(
            walk.driver.at, session.pubkey(), audit.round, audit.target, root
        )
        walk.attempt(posted, session)
    settle(walk, audit)


def speak(walk: Walk, audit: AuditView) -> None:
    """Each seat commits, or shows what it committed to."""
    for seat in audit.judging:
        words = said(audit, seat.index)
        if words is None or is_done(walk, audit, seat.flags):
            continue
        kind, sketch = words
        session, salt = walk.session_of(seat.index), bytes([seat.index]) * 32
        who = (bytes(walk.driver.at.run), audit.round, audit.target, seat.index)
        shown = audits.Reveal(kind, audit.openings_root, sketch, salt)
        hashed = Statement(*who, kind, shown.evidence, sketch_hash(sketch)).commit(salt)
        at, me = walk.driver.at, session.pubkey()
        if audit.stage == AuditStage.COMMIT:
            walk.attempt(audits.commit_verdict(at, me, audit, seat.index, hashed), session)
        if audit.stage == AuditStage.REVEAL or walk.dice.random() < 0.1:
            walk.attempt(audits.reveal_verdict(at, me, audit, seat.index, shown), session)


def hear(walk: Walk, audit: AuditView) -> None:
    speak(walk, audit)
    who = walk.driver.cranker
    if is_time(walk, audit):
        walk.attempt(audits.extend_audit(walk.driver.at, who.pubkey(), audit), who)
    settle(walk, audit)


def is_done(walk: Walk, audit: AuditView, flags: int) -> bool:
    """Whether a judge has nothing to say now; sometimes it does not look."""
    is_hiding = audit.stage in (AuditStage.COMMIT, AuditStage.CASE_COMMIT)
    has_spoken = flags & (SeatFlag.COMMITTED if is_hiding else SeatFlag.REVEALED)
    is_late = not is_hiding and walk.clock > audit.stage_end
    return bool(has_spoken or is_late) and walk.dice.random() < 0.9


def is_time(walk: Walk, audit: AuditView) -> bool:
    """Whether a window of an audit has ended; sometimes people do not look."""
    is_shown = audit.stage in (AuditStage.REVEAL, AuditStage.CASE_REVEAL)
    is_early = walk.dice.random() < (0.5 if is_shown else 0.1)
    return walk.clock > audit.stage_end or is_early


def settle(walk: Walk, audit: AuditView) -> None:
    if not is_time(walk, audit):
        return
    who, people = walk.driver.cranker, walk.people(audit)
    walk.attempt(audits.settle_audit(walk.driver.at, who.pubkey(), audit, people), who)


def draw(walk: Walk, audit: AuditView) -> None:
    who = walk.driver.cranker
    walk.attempt(cases.draw_jury(walk.driver.at, who.pubkey(), audit), who)


def vote(walk: Walk, audit: AuditView) -> None:
    """Each juror commits, or shows its vote; then the case may be settled."""
    for juror in audit.jurors:
        words = said(audit, juror.index)
        if words is None or is_done(walk, audit, juror.flags):
            continue
        session, salt = walk.session_of(juror.index), bytes([juror.index]) * 32
        run, kind = bytes(walk.driver.at.run), int(audit.kind)
        sketch = words[1] if audit.kind == AuditKind.WORK else NO_SKETCH
        about = (run, audit.round, audit.target, kind, juror.index, words[0], audit.openings_root)
        spoken = Vote(*about, sketch_hash(sketch))
        at, me = walk.driver.at, session.pubkey()
        if audit.stage == AuditStage.CASE_COMMIT:
            hidden = cases.commit_vote(at, me, audit, juror.index, spoken.commit(salt))
            walk.attempt(hidden, session)
        else:
            shown = Reveal(int(words[0]), audit.openings_root, sketch, salt)
            walk.attempt(cases.reveal_vote(at, me, audit, juror.index, shown), session)
    if not is_time(walk, audit):
        return
    who, people = walk.driver.cranker, walk.people(audit)
    walk.attempt(cases.settle_case(walk.driver.at, who.pubkey(), audit, people), who)


def end(walk: Walk, audit: AuditView) -> None:
    """The convicted appeals, the council reverses, anybody releases."""
    at = walk.driver.at
    convicted = walk.known.get(audit.owner)
    is_conviction = audit.case_outcome == CaseOutcome.CONVICTED
    may_appeal = is_conviction and not audit.flags & AuditFlag.APPEALED
    may_reverse = audit.appeal_end < walk.clock <= audit.stage_end and is_conviction
    if convicted is not None and walk.dice.random() < (0.6 if may_appeal else 0.05):
        walk.attempt(cases.appeal_case(at, convicted.pubkey(), audit), convicted)
    if walk.dice.random() < (0.7 if may_reverse else 0.05):
        council: Keypair = key("council")
        walk.attempt(cases.reverse_case(at, council.pubkey(), audit), council)
    if walk.clock <= max(audit.stage_end, audit.case_end) and walk.dice.random() < 0.9:
        return
    who, people = walk.driver.cranker, walk.people(audit)
    walk.attempt(cases.release_escrow(at, who.pubkey(), audit, people), who)


def give_up(walk: Walk) -> None:
    """The authority ends a run that waits in vain, for everybody else may have left."""
    driver, boss = walk.driver, walk.driver.authority
    if driver.run.phase == Phase.WAITING_FOR_MEMBERS:
        driver.chain.advance(driver.params.unbond_slots + 1)
        ended = life.advance_phase(driver.at, boss.pubkey(), driver.run.round)
        walk.attempt(ended, boss)


def to_the_end(walk: Walk) -> None:
    """From wherever a walk stopped: the run finishes, its audits end, everybody takes theirs."""
    for _ in range(200):
        if walk.is_over:
            return
        run, boss = walk.driver.run, walk.driver.authority
        if run.phase == Phase.FINISHED and not walk.driver.audits:
            wind_up(walk)
            continue
        tend(walk)
        if run.phase in (Phase.PAUSED, Phase.FINISHED):
            # The next round takes the ring account of one whose seed may still be pending, and an
            # audit that somebody asked for waits for the seed of its round.
            freeze(walk)
        if run.phase == Phase.PAUSED:
            walk.attempt(life.resume_run(walk.driver.at, boss.pubkey(), run.round), boss)
        elif run.phase != Phase.FINISHED:
            recover(walk)
            move_on(walk)
            void(walk)
            give_up(walk)
        run_out(walk)
        walk.look()
    raise AssertionError(f"no end: {walk.driver.run.phase}, {walk.driver.audits}")


STEPS: dict[AuditStage, Callable[[Walk, AuditView], None]] = {
    AuditStage.REQUESTED: settle,
    AuditStage.OPENINGS: show,
    AuditStage.COMMIT: hear,
    AuditStage.REVEAL: hear,
    AuditStage.SETTLED: end,
    AuditStage.ACCUSED: draw,
    AuditStage.CASE_COMMIT: vote,
    AuditStage.CASE_REVEAL: vote,
    AuditStage.DECIDED: end,
}
AUDIT_ACTIONS: tuple[tuple[int, Action], ...] = (
    *((weight, action) for weight, action in ACTIONS if action is not wait),
    (70, tend),
    (25, open_sampled),
    (8, request),
    (30, challenge),
    (12, run_out),
    (2, oversleep),
    (15, recover),
    (10, go),
    (6, join),
    (6, leave),
)
"""Without waits so long that every window ends in them."""
