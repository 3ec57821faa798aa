"""Drives cases of a run, from an accusation to the end of the escrow.

A CaseDriver lets juries vote as a test asks. Votes and salts follow from names.
Next: audits.py for the time before an accusation; the test_case_* files.
"""

from collections.abc import Sequence
from typing import Self

from solders.instruction import Instruction
from solders.keypair import Keypair

from support.program.audits import MISMATCH, OK, TRUE, AuditDriver, Said, salt_of
from support.program.chain import Landed
from support.program.rounds import SOL, key
from troth_attestation.cases import NO_SKETCH, Vote
from troth_attestation.sketch import Sketch, sketch_hash
from troth_attestation.verdict import VerdictKind
from troth_coordinator.chain import case_instructions as make
from troth_coordinator.chain import instructions as life
from troth_coordinator.chain.audit_instructions import Reveal
from troth_coordinator.chain.case_instructions import NO_SUBJECT, Claim
from troth_coordinator.rules.audit_view import AuditKind, AuditStage, AuditView
from troth_coordinator.rules.view import Status

STAKE = 100_000
FEE = 200
BOND = 5_000
ACCUSED: Sequence[Said] = (MISMATCH, MISMATCH, MISMATCH, OK, OK)
"""The reports of five seats that accuse somebody."""
CLEARED: Sequence[Said] = (OK, OK, OK)
WORK, PAYLOAD, ROOT, POSSESSION = AuditKind


class CaseDriver(AuditDriver):
    """A run whose accused come before a jury."""

    @classmethod
    def started(cls, num: int = 12, rounds: int = 1, **changes: int | str) -> Self:
        """A run after so many rounds, the seed of the last one frozen."""
        return super().started(num, rounds, **changes)

    @classmethod
    def with_four_judges(cls, offender: int) -> Self:
        """Six participants, the first four of them witnesses, so that two may be convicted in an
        epoch. The offender was convicted of work once; the last two rounds are included whole."""
        patient = {"commit_slots": 1_000, "unbond_slots": 12_000, "vesting_slots": 12_000}
        driver = cls(6, roles=(3, 3, 3, 3, 1, 1), seat_load=15, openings_slots=2_000, **patient)
        driver.start()
        driver.play(1)
        driver.draw(0)
        driver.offend(offender)
        driver.play(1)
        driver.draw(driver.run.round - 1)
        return driver

    def voted(self, round_: int, target: int) -> AuditView:
        """Seats and jury say that the work does not match; the case can be settled."""
        others = (self.round(round_).eligible & ~(1 << target)).bit_count()
        self.judge(round_, target, [MISMATCH] * min(others, 5))
        return self.vote_all(self.case(round_, target), MISMATCH)

    def convict(self, round_: int, target: int) -> Landed:
        """All seats accuse, and so does the jury."""
        return self.settle_case(self.voted(round_, target), people=[target])

    def offend(self, index: int) -> None:
        """A conviction for work in the newest closed round stands; the offender tops up in time.

        After this it is included in the newest closed round, whose seed is frozen.
        """
        round_ = self.run.round - 1
        self.convict(round_, index)
        self.release(self.case(round_, index))
        owner = self.owners[index]
        missing = self.params.min_stake_lamports - self.entries[index].stake
        self.send(life.top_up_stake(self.at, owner.pubkey(), missing), owner)
        self.play(3)
        self.draw(self.run.round - 1)

    def bar(self, index: int) -> None:
        """The second conviction for work, in the newest closed round: the first one stands."""
        self.convict(self.run.round - 1, index)
        assert self.entries[index].status == Status.BARRED

    def case(self, round_: int, target: int, kind: AuditKind = WORK) -> AuditView:
        case = self.audit(round_, target, kind)
        assert case is not None
        return case

    def outsider(self, name: str) -> Keypair:
        """Somebody with lamports who takes no part in the run."""
        stranger = key(name)
        if not self.chain.accounts.balance(stranger.pubkey()):
            self.chain.airdrop(stranger.pubkey(), 100 * SOL)
        return stranger

    # Accusations.

    def accuse(self, round_: int, target: int) -> AuditView:
        """The seats of the sample accuse."""
        self.judge(round_, target, ACCUSED)
        return self.case(round_, target)

    def challenge_instruction(
        self, who: Keypair, round_: int, target: int, kind: AuditKind, subject: int = NO_SUBJECT
    ) -> Instruction:
        return make.open_case(self.at, who.pubkey(), Claim(round_, target, kind, subject))

    def challenge(
        self, who: Keypair, round_: int, target: int, kind: AuditKind, subject: int = NO_SUBJECT
    ) -> Landed:
        """Somebody accuses with a bond."""
        return self.send(self.challenge_instruction(who, round_, target, kind, subject), who)

    # The jury.

    def draw_instruction(self, case: AuditView) -> Instruction:
        return make.draw_jury(self.at, self.cranker.pubkey(), case)

    def seat_jury(self, case: AuditView) -> AuditView:
        """Wait for the seed slot of a case, then draw its jury."""
        if self.slot <= case.case_seed_slot:
            self.chain.advance(case.case_seed_slot + 1 - self.slot)
        self.send(self.draw_instruction(case), self.cranker)
        return self.case(case.round, case.target, case.kind)

    def vote_instructions(
        self, case: AuditView, index: int, said: VerdictKind | tuple[VerdictKind, Sketch]
    ) -> tuple[Instruction, Instruction]:
        """The commit and the reveal of a juror; about work with the true sketch or another one."""
        verdict, sketch = said if isinstance(said, tuple) else (said, TRUE)
        if case.kind != WORK or verdict == VerdictKind.UNAVAILABLE:
            sketch = NO_SKETCH
        session, salt = self.sessions[index].pubkey(), salt_of(case, index)
        evidence = case.openings_root
        run, kind = bytes(self.at.run), int(case.kind)
        about = (run, case.round, case.target, kind, index, verdict, evidence)
        vote = Vote(*about, sketch_hash(sketch))
        shown = Reveal(int(verdict), evidence, sketch, salt)
        return (
            make.commit_vote(self.at, session, case, index, vote.commit(salt)),
            make.reveal_vote(self.at, session, case, index, shown),
        )

    def take_votes(self, case: AuditView, votes: Sequence[Said], hidden: int = 0) -> None:
        """The jurors vote so in order, to the end of their windows. None says nothing; `hidden` is
        a bitmap of places whose commit is never shown."""
        spoken = [
            (place, juror.index, vote)
            for place, (juror, vote) in enumerate(zip(case.jurors, votes, strict=True))
            if vote is not None
        ]
        for _, index, vote in spoken:
            commit, _ = self.vote_instructions(case, index, vote)
            self.send(commit, self.sessions[index])
        if self.case(case.round, case.target, case.kind).stage == AuditStage.CASE_COMMIT:
            self.run_to(case.stage_end)
        for place, index, vote in spoken:
            if not hidden >> place & 1:
                _, reveal = self.vote_instructions(case, index, vote)
                self.send(reveal, self.sessions[index])
        if hidden:
            self.run_to(case.stage_end + self.params.jury_reveal_slots)

    def vote_all(self, case: AuditView, verdict: VerdictKind) -> AuditView:
        """A jury is drawn and unanimous; the case can be settled."""
        seated = self.seat_jury(case)
        self.take_votes(seated, [verdict] * len(seated.jurors))
        return self.case(case.round, case.target, case.kind)

    def settle_case_instruction(self, case: AuditView, people: Sequence[int] = ()) -> Instruction:
        owners = [self.owners[index].pubkey() for index in people]
        return make.settle_case(self.at, self.cranker.pubkey(), case, owners)

    def settle_case(self, case: AuditView, people: Sequence[int] = ()) -> Landed:
        return self.send(self.settle_case_instruction(case, people), self.cranker)

    def decide(
        self,
        case: AuditView,
        verdict: VerdictKind,
        people: Sequence[int] = (),
    ) -> Landed:
        """A whole case with a unanimous jury."""
        return self.settle_case(self.vote_all(case, verdict), people)

    # The end.

    def appeal(self, case: AuditView) -> Landed:
        owner = self.owners[case.target]
        return self.send(make.appeal_case(self.at, owner.pubkey(), case), owner)

    def reverse_instruction(self, case: AuditView) -> Instruction:
        return make.reverse_case(self.at, key("council").pubkey(), case)

    def reverse(self, case: AuditView) -> Landed:
        return self.send(self.reverse_instruction(case), self.outsider("council"))

    def release_instruction(self, case: AuditView, people: Sequence[int] = ()) -> Instruction:
        now = self.case(case.round, case.target, case.kind)
        owners = [self.owners[index].pubkey() for index in people]
        return make.release_escrow(self.at, self.cranker.pubkey(), now, owners)

    def release(self, case: AuditView, people: Sequence[int] = ()) -> Landed:
        """Wait until nothing may happen to an audit any more, then close it."""
        now = self.case(case.round, case.target, case.kind)
        self.run_to(max(now.stage_end, now.case_end))
        return self.send(self.release_instruction(case, people), self.cranker)
