"""Drives audits of a run, from the sample to the outcome of the seats.

An AuditDriver samples everybody in every round. Verdicts, sketches and salts follow from names;
`TRUE` is the sketch of whoever recomputes, `LAZY` that of somebody who does not.
Next: rounds.py for the rounds beneath; the test_audit_* files.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Self

from solders.instruction import Instruction
from solders.pubkey import Pubkey

from support.program.chain import Landed
from support.program.copies import copy_of
from support.program.rounds import SOL, RoundDriver
from troth_attestation.sketch import Sketch, sketch_hash
from troth_attestation.verdict import Statement, VerdictKind
from troth_coordinator.chain import audit_instructions as make
from troth_coordinator.chain.audit_instructions import Reveal
from troth_coordinator.rules.audit_view import AuditStage, AuditView
from troth_coordinator.rules.ids import NONE

OK, MISMATCH = VerdictKind.OK, VerdictKind.MISMATCH
UNAVAILABLE, INCONCLUSIVE = VerdictKind.UNAVAILABLE, VerdictKind.INCONCLUSIVE
TRUE: Sketch = tuple((-1) ** k * 1_000 * k for k in range(64))
LAZY: Sketch = (7,) * 64
CERTAIN = {"p_base_ppm": 1_000_000, "p_new_ppm": 1_000_000}
INCINERATOR = Pubkey.from_string("1nc1nerator11111111111111111111111111111111")

Said = VerdictKind | tuple[VerdictKind, Sketch] | None
"""The report of a seat: a kind with the true sketch, another sketch with it, or nothing at all."""


def openings_of(round_: int, target: int) -> bytes:
    """The root over a target's openings; any 32 bytes would do."""
    return hashlib.sha256(f"openings {round_} {target}".encode()).digest()


def salt_of(audit: AuditView, index: int) -> bytes:
    return hashlib.sha256(f"salt {audit.key} {index}".encode()).digest()


class AuditDriver(RoundDriver):
    """A run whose participants are audited."""

    def __init__(
        self, num: int = 6, *, roles: Sequence[int] = (), pool: int = SOL, **changes: int | str
    ) -> None:
        values: dict[str, int | str] = {**CERTAIN, "audit_cap": 16, **changes}
        super().__init__(num, roles=roles, pool=pool, **values)

    @classmethod
    def started(cls, num: int = 6, rounds: int = 1, **changes: int | str) -> Self:
        """A run after so many rounds, the seed of the last one frozen."""
        return copy_of(cls.build, num, rounds, **changes)

    @classmethod
    def build(cls, num: int, rounds: int, **changes: int | str) -> Self:
        """The same, played from the first slot on rather than copied."""
        driver = cls(num, **changes)
        driver.start()
        driver.play(rounds)
        driver.draw(rounds - 1)
        return driver

    def of(self, round_: int, target: int) -> AuditView:
        audit = self.audit(round_, target)
        assert audit is not None
        return audit

    @property
    def clock(self) -> int:
        """The run clock, of a run that is not paused."""
        return self.slot - self.run.pause_total_slots

    def run_to(self, clock: int) -> None:
        """Move to the first moment after `clock`."""
        assert clock != NONE, "this stage does not end by time"
        if self.clock <= clock:
            self.chain.advance(clock + 1 - self.clock)

    def draw(self, round_: int) -> Landed:
        """Wait for the seed slot of a round, then freeze its seed."""
        wanted = self.round(round_).seed_slot
        if self.slot <= wanted:
            self.chain.advance(wanted + 1 - self.slot)
        return self.freeze(round_)

    # From the sample to the openings.

    def request(self, target: int) -> Landed:
        return self.send(self.request_instruction(target), self.cranker)

    def request_instruction(self, target: int) -> Instruction:
        return make.request_audit(self.at, self.cranker.pubkey(), self.run.round, target)

    def open_audit(self, round_: int, target: int) -> Landed:
        return self.send(self.open_instruction(round_, target), self.cranker)

    def open_instruction(self, round_: int, target: int) -> Instruction:
        return make.open_audit(self.at, self.cranker.pubkey(), round_, target)

    def post(self, round_: int, target: int) -> Landed:
        return self.send(self.post_instruction(round_, target), self.sessions[target])

    def post_instruction(self, round_: int, target: int, root: bytes | None = None) -> Instruction:
        session, shown = self.sessions[target].pubkey(), root or openings_of(round_, target)
        return make.post_openings(self.at, session, round_, target, shown)

    # Verdicts.

    def statement(self, audit: AuditView, index: int, said: Said) -> tuple[Reveal, bytes]:
        """The reveal of a seat, and the hash that it commits to."""
        assert said is not None
        kind, sketch = said if isinstance(said, tuple) else (said, TRUE)
        shown = Reveal(kind, audit.openings_root, sketch, salt_of(audit, index))
        who = (bytes(self.at.run), audit.round, audit.target, index)
        hashed = Statement(*who, kind, shown.evidence, sketch_hash(sketch)).commit(shown.salt)
        return shown, hashed

    def commit_instructions(
        self, audit: AuditView, index: int, said: Said
    ) -> tuple[Instruction, Instruction]:
        """The commit and the reveal of a seat."""
        session = self.sessions[index].pubkey()
        shown, hashed = self.statement(audit, index, said)
        return (
            make.commit_verdict(self.at, session, audit, index, hashed),
            make.reveal_verdict(self.at, session, audit, index, shown),
        )

    def take_verdicts(
        self, round_: int, target: int, said: Sequence[Said], hidden: int = 0
    ) -> None:
        """The acting seats say these in order, to the end of Reveal. `hidden` is a bitmap of
        places whose commit is never shown."""
        audit = self.of(round_, target)
        first = audit.first_acting
        spoken = [
            (place, audit.seats[place].index, kind)
            for place, kind in enumerate(said, start=first)
            if kind is not None
        ]
        for _, index, kind in spoken:
            commit, _ = self.commit_instructions(audit, index, kind)
            self.send(commit, self.sessions[index])
        if self.of(round_, target).stage == AuditStage.COMMIT:
            self.run_to(audit.stage_end)
        for place, index, kind in spoken:
            if not hidden >> place & 1:
                _, reveal = self.commit_instructions(audit, index, kind)
                self.send(reveal, self.sessions[index])
        if hidden:
            self.run_to(audit.stage_end + self.params.verdict_reveal_slots)

    def take_all_verdicts(self, round_: int, says: Mapping[int, Sequence[Said]]) -> None:
        """As `take_verdicts`, for the audits of many targets in the same windows."""
        late = []
        for target, said in says.items():
            audit = self.of(round_, target)
            first = audit.first_acting
            reveals = []
            for seat, kind in zip(audit.seats[first:], said, strict=False):
                if kind is not None:
                    commit, reveal = self.commit_instructions(audit, seat.index, kind)
                    self.send(commit, self.sessions[seat.index])
                    reveals.append((reveal, self.sessions[seat.index]))
            is_early = self.of(round_, target).stage == AuditStage.REVEAL
            late += [] if is_early else reveals
            for reveal, session in reveals if is_early else []:
                self.send(reveal, session)
        self.run_to(max(self.of(round_, target).stage_end for target in says))
        for reveal, session in late:
            self.send(reveal, session)

    def extend(self, round_: int, target: int) -> Landed:
        return self.send(self.extend_instruction(round_, target), self.cranker)

    def extend_instruction(self, round_: int, target: int) -> Instruction:
        return make.extend_audit(self.at, self.cranker.pubkey(), self.of(round_, target))

    def settle_instruction(
        self, round_: int, target: int, people: Sequence[int] = ()
    ) -> Instruction:
        audit, owners = self.of(round_, target), [self.owners[i].pubkey() for i in people]
        return make.settle_audit(self.at, self.cranker.pubkey(), audit, owners)

    def settle(self, round_: int, target: int, people: Sequence[int] = ()) -> Landed:
        return self.send(self.settle_instruction(round_, target, people), self.cranker)

    def judge(self, round_: int, target: int, said: Sequence[Said]) -> Landed:
        """A whole audit: openings, three verdicts, then two more and two more as `said` goes."""
        self.post(round_, target)
        self.take_verdicts(round_, target, said[:3])
        for more in (said[3:5], said[5:]):
            if more:
                self.extend(round_, target)
                self.take_verdicts(round_, target, more)
        return self.settle(round_, target)

    def burned(self) -> int:
        """Lamports at the incinerator."""
        return int(self.chain.accounts.balance(INCINERATOR))
