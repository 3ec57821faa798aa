"""One run on the embedded chain: reading its accounts and sending transactions.

Every transaction that lands is checked: the vault holds exactly what the run owes, the totals are
the sums over the entries, and the events give the chain hash (ledger.py). `refused` sends what
must fail, and checks that no account of the program changed.
Next: rounds.py, which drives rounds.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import solders.account
from solders.compute_budget import set_compute_unit_limit
from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from solders.transaction import Transaction

from support.program.ledger import Ledger
from troth_attestation.quorum import CaseOutcome
from troth_attestation.verdict import VerdictKind
from troth_coordinator import artifacts
from troth_coordinator.chain.accounts import AccountReader
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.case_instructions import NO_SUBJECT
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.events import EventReader
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.rpc import Account
from troth_coordinator.rules.audit_view import (
    AuditFlag,
    AuditStage,
    AuditView,
    JurorView,
    SeatView,
)
from troth_coordinator.rules.closing import liabilities
from troth_coordinator.rules.view import EntryView, RoundView, RunView
from troth_localnet.direct import record_of
from troth_localnet.errors import RefusedTransactionError
from troth_localnet.svm import Chain, ChainConfig

NO_INDEX = 65_535
MAX_UNITS = 1_400_000
View = TypeVar("View")
COMPUTE_BUDGET_UNITS = 150
"""Compute units of the instruction that sets the limit in each transaction."""


@dataclass(frozen=True)
class Cost:
    """The most that an instruction has cost, alone in a transaction with a limit."""

    units: int = 0
    size_bytes: int = 0


@dataclass(frozen=True)
class Landed:
    """A transaction that succeeded."""

    events: tuple[Event, ...]
    units: int
    size_bytes: int

    def event(self, name: str) -> Event:
        """The only event of that name."""
        (found,) = [event for event in self.events if event.name == name]
        return found

    def names(self) -> list[str]:
        return [event.name for event in self.events]


class ChainDriver:
    """A chain with the program, and one run of it."""

    has_token_programs = False

    def __init__(self, authority: Pubkey, run_id: bytes, ring: int) -> None:
        self.chain = self.new_chain()
        self.chain.advance(10)
        self.ledger = Ledger()
        layout = program_layout()
        self.at = RunAddresses.create(authority, run_id, ring, layout.program_id)
        self._reader = AccountReader(layout, program_codec())
        self._events = EventReader(program_codec())
        self._errors = program_codec().errors
        self._num_sent = 0
        self._has_audits = False
        self._known: dict[Pubkey, tuple[Account, Any]] = {}
        self.costs: dict[str, Cost] = {}

    def new_chain(self) -> Chain:
        """A chain with the program on it, before anything has happened."""
        chain = Chain(ChainConfig(has_token_programs=self.has_token_programs))
        chain.add_program(program_layout().program_id, artifacts.program_image())
        return chain

    # Reading.

    def _account(self, address: Pubkey) -> Account | None:
        found = self.chain.accounts.get(address)
        return None if found is None else _plain(found)

    @property
    def slot(self) -> int:
        return self.chain.slot

    def _decoded(
        self, address: Pubkey, account: Account, read: Callable[[Pubkey, Account], View]
    ) -> View:
        """Decode an account, or return its last view if it has not changed since."""
        known = self._known.get(address)
        if known is None or known[0] != account:
            known = self._known[address] = (account, read(address, account))
        view: View = known[1]
        return view

    @property
    def run(self) -> RunView:
        account = self._account(self.at.run)
        assert account is not None
        return self._decoded(self.at.run, account, self._reader.run)

    @property
    def entries(self) -> tuple[EntryView, ...]:
        account = self._account(self.at.roster)
        assert account is not None
        return self._decoded(self.at.roster, account, self._reader.roster)

    def round(self, round_: int) -> RoundView:
        account = self._account(self.at.round(round_))
        assert account is not None
        view = self._decoded(self.at.round(round_), account, self._reader.round)
        assert view.round == round_, f"the ring holds round {view.round}"
        return view

    @property
    def audits(self) -> tuple[AuditView, ...]:
        """Every Audit account of the run, by address."""
        kind = program_layout().accounts["Audit"].discriminator
        owned = self.chain.accounts.of_program(self.at.program)
        mine = [(key, _plain(found)) for key, found in owned if found.data[:8] == kind]
        audits = [self._decoded(key, account, self._reader.audit) for key, account in mine]
        return tuple(audit for audit in audits if audit.run == bytes(self.at.run))

    def audit(self, round_: int, target: int, kind: int = 0) -> AuditView | None:
        """The audit of a target in a round, or None where it is not open."""
        return self._audit_at(self.at.audit(round_, target, kind))

    def _audit_at(self, address: Pubkey) -> AuditView | None:
        account = self._account(address)
        if account is None or account.owner != self.at.program:
            return None
        return self._decoded(address, account, self._reader.audit)

    @property
    def open(self) -> RoundView:
        return self.round(self.run.round)

    # Sending.

    def send(self, instruction: Instruction | Sequence[Instruction], *signers: Keypair) -> Landed:
        """Send one transaction that must succeed; the first signer pays."""
        raw = self._signed(instruction, signers)
        try:
            signature = self.chain.send(raw)
        except RefusedTransactionError as error:
            lines = "\n".join(error.outcome.logs)
            raise AssertionError(f"{error.outcome.error}\n{lines}") from error
        landed = self.chain.history.get(signature)
        assert landed is not None
        parsed = self._events.read(record_of(landed))
        assert parsed.is_complete
        self.ledger.absorb(parsed.events)
        self._check_books()
        units = landed.outcome.compute_units - COMPUTE_BUDGET_UNITS
        if isinstance(instruction, Instruction):
            self._note_cost(instruction, units, len(raw))
        return Landed(parsed.events, units, len(raw))

    def _note_cost(self, instruction: Instruction, units: int, size_bytes: int) -> None:
        name = program_codec().instruction_names.get(bytes(instruction.data[:8]))
        if name is None:
            return
        known = self.costs.get(name, Cost())
        self.costs[name] = Cost(max(known.units, units), max(known.size_bytes, size_bytes))

    def refused(self, instruction: Instruction | Sequence[Instruction], *signers: Keypair) -> str:
        """Send what must fail; returns the program's error name, or the runtime's error."""
        before = self.chain.accounts.of_program(self.at.program)
        try:
            self.chain.send(self._signed(instruction, signers))
        except RefusedTransactionError as error:
            assert self.chain.accounts.of_program(self.at.program) == before
            return self._name(error)
        raise AssertionError("the program accepted it")

    def attempt(self, instruction: Instruction | Sequence[Instruction], *signers: Keypair) -> str:
        """Send what may fail; returns the name of the error as `refused` does, else nothing."""
        try:
            self.send(instruction, *signers)
        except AssertionError as error:
            if isinstance(error.__cause__, RefusedTransactionError):
                return self._name(error.__cause__)
            raise
        return ""

    def _signed(
        self, instruction: Instruction | Sequence[Instruction], signers: Sequence[Keypair]
    ) -> bytes:
        many = [instruction] if isinstance(instruction, Instruction) else list(instruction)
        blockhash, _ = self.chain.latest_blockhash()
        # A limit of its own makes otherwise equal transactions differ.
        self._num_sent += 1
        limit = set_compute_unit_limit(MAX_UNITS - self._num_sent)
        message = Message.new_with_blockhash([limit, *many], signers[0].pubkey(), blockhash)
        return bytes(Transaction(list(dict.fromkeys(signers)), message, blockhash))

    def _name(self, error: RefusedTransactionError) -> str:
        match error.outcome.error:
            case {"InstructionError": [_, {"Custom": code}]} if code in self._errors:
                return self._errors[code].name
            case {"InstructionError": [_, {"Custom": code}]}:
                return f"Custom({code})"
            case {"InstructionError": [_, reason]}:
                return str(reason)
            case other:
                return str(other)

    def create(self, instructions: Sequence[Instruction], *signers: Keypair) -> None:
        """Send what creates run and roster, one by one: the books cannot be read before."""
        for instruction in instructions:
            raw = self._signed(instruction, signers)
            landed = self.chain.history.get(self.chain.send(raw))
            assert landed is not None
            self.ledger.absorb(self._events.read(record_of(landed)).events)
            units = landed.outcome.compute_units - COMPUTE_BUDGET_UNITS
            self._note_cost(instruction, units, len(raw))
        self._check_books()

    def _check_books(self) -> None:
        if self._account(self.at.run) is None:
            return
        run = self.run
        assert self.chain.accounts.balance(self.at.vault) == liabilities(run)
        entries = self.entries
        assert run.total_stake == sum(e.stake for e in entries)
        assert run.total_unvested == sum(sum(e.bucket_amount) for e in entries)
        assert run.total_withheld == sum(e.withheld for e in entries)
        self._check_audits(run, entries)
        assert run.chain_hash == self.ledger.hash
        assert run.event_sequence == self.ledger.next_sequence
        self.ledger.recounted.compare(run, entries)

    def _check_audits(self, run: RunView, entries: Sequence[EntryView]) -> None:
        """Bonds, escrow and the counters of the entries follow from the open audits alone."""
        audits = self.audits if run.num_audits or self._has_audits else ()
        self._has_audits = bool(audits)
        assert run.num_audits == len(audits)
        assert run.total_bonds == sum(audit.prepaid + audit.bond for audit in audits)
        assert run.total_escrow == sum(audit.escrow for audit in audits)
        named: Counter[int] = Counter(index for audit in audits for index in _named(audit))
        targets: Counter[int] = Counter(audit.target for audit in audits)
        frozen: Counter[int] = Counter(audit.target for audit in audits if _freezes(audit))
        for index, entry in enumerate(entries):
            assert entry.audits == named[index], index
            assert entry.targets == targets[index], index
            assert entry.frozen == frozen[index], index


def _plain(found: solders.account.Account) -> Account:
    return Account(found.lamports, found.owner, bytes(found.data), found.executable)


def _freezes(audit: AuditView) -> bool:
    """Whether an accusation is under way, or its escrow waits.

    One of serving nothing freezes once two thirds of a jury have shown votes that convict.
    """
    if audit.case_outcome == CaseOutcome.CONVICTED:
        return True
    if not AuditStage.ACCUSED <= audit.stage < AuditStage.DECIDED:
        return False
    votes = [juror.verdict for juror in audit.jurors]
    convicts = 3 * votes.count(VerdictKind.MISMATCH) >= 2 * len(votes) >= 6
    return convicts or not audit.flags & AuditFlag.UNAVAILABLE


def _named(audit: AuditView) -> list[int]:
    everyone: tuple[SeatView | JurorView, ...] = (*audit.seats, *audit.jurors)
    judges = [judge.index for judge in everyone]
    challenger = [] if audit.challenger_index == NO_SUBJECT else [audit.challenger_index]
    return [audit.target, *challenger, *judges]
