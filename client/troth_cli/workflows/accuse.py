"""Open a case, appeal against a conviction, reverse one: the checks before money moves.

Owns: the errors that name what a claim needs. Never: judges a claim; the jury does.
Next: `open_case`, `appeal_case` and `reverse_case` of the program.
"""

from dataclasses import dataclass

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.errors import CaseError, FundsError, InputError
from troth_cli.view.amounts import sol
from troth_cli.view.cases import kind_text
from troth_coordinator.chain import case_instructions as make
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.case_instructions import NO_SUBJECT, Claim
from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
from troth_coordinator.rules.audit_view import AuditKey, AuditKind, AuditStage, AuditView
from troth_coordinator.rules.audits import run_clock
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.view import NetworkView, RoundFlag, Status

RENT_LAMPORTS = 20_000_000
"""The highest cost of a new account and the fee beside the bond; the rent comes back."""
KINDS = tuple(kind.name.lower() for kind in AuditKind)


@dataclass(frozen=True, slots=True)
class Signer:
    """A key of a run that accuses, appeals or reverses."""

    client: CoordinatorClient
    at: RunAddresses
    key: Keypair

    async def check(self, claim: Claim) -> int:
        """Return the bond of a case; raise CaseError or FundsError where it cannot be opened."""
        view = await self.client.snapshot(self.at.run)
        await self._check_round(claim, view)
        _check_target(claim, view, bytes(self.key.pubkey()))
        if claim.kind is AuditKind.WORK:
            (audit,) = await self.client.read_audits(self.at.run, [_key(claim)])
            _check_work(claim, audit)
        bond = view.run.params.bond_lamports
        balance = await self.client.balance(self.key.pubkey())
        if balance < bond + RENT_LAMPORTS:
            raise FundsError(
                f"{sol(bond + RENT_LAMPORTS)}: the bond of {sol(bond)}, rent and a fee",
                sol(balance),
                "Send SOL to it; the bond comes back unless the target is acquitted.",
                f"account {self.key.pubkey()}",
            )
        return bond

    async def accuse(self, claim: Claim) -> ConfirmedTransaction:
        """Open the case; the bond moves to the run's vault."""
        step = make.open_case(self.at, self.key.pubkey(), claim)
        return await self.client.send([step], [self.key])

    async def appeal(self, key: AuditKey) -> ConfirmedTransaction:
        """Ask the council to review a conviction of the key's owner."""
        step = make.appeal_case(self.at, self.key.pubkey(), await self._case(key))
        return await self.client.send([step], [self.key])

    async def reverse(self, key: AuditKey) -> ConfirmedTransaction:
        """As the council, give back the lamports of a conviction."""
        run = await self.client.read_run(self.at.run)
        if run.council != bytes(self.key.pubkey()):
            council = Pubkey.from_bytes(run.council)
            advice = "Only the council reverses; a convicted owner asks it: troth case appeal."
            raise _refused(key, f"the council's key, {council}", f"{self.key.pubkey()}", advice)
        step = make.reverse_case(self.at, self.key.pubkey(), await self._case(key))
        return await self.client.send([step], [self.key])

    async def _case(self, key: AuditKey) -> AuditView:
        (audit,) = await self.client.read_audits(self.at.run, [key])
        if audit is None:
            raise _refused(key, "an open case", "none", "See the open ones: troth case list.")
        return audit

    async def _check_round(self, claim: Claim, view: NetworkView) -> None:
        (round_,) = await self.client.read_rounds(self.at.run, [claim.round])
        ring = view.run.params.ring
        if round_ is None or round_.round != claim.round:
            oldest, newest = max(0, view.run.round - ring + 1), view.run.round - 1
            is_old = claim.round < oldest
            expected = f"a closed round from {oldest} to {newest}"
            raise _refused(
                _key(claim),
                expected if newest >= oldest else "a closed round; none has closed yet",
                f"{claim.round}",
                "Older rounds are no longer judged." if is_old else "Wait until it has closed.",
            )
        if not round_.flags & RoundFlag.CLOSED:
            raise _refused(
                _key(claim), "a closed round", "an open one", "Wait until it has closed."
            )
        ends = round_.close_clock + view.run.params.case_slots
        clock = run_clock(view.run, view.slot)
        if clock > ends:
            expected = f"a case by {ends} on the run's clock ({view.run.params.case_slots} slots)"
            raise _refused(_key(claim), expected, f"{clock}", "It is too late for this round.")


def kind_name(kind: str) -> str:
    """Return the name of a kind of case in the code; InputError for one that does not exist."""
    if kind not in KINDS:
        raise InputError(", ".join(KINDS), repr(kind), "Choose one of these.", "--kind")
    return kind.upper()


def claim_of(round_: int, target: int, kind: str, subject: int | None) -> Claim:
    """Return the claim of a command line; InputError for an unknown kind or a wrong subject."""
    chosen = AuditKind[kind_name(kind)]
    needs_subject = chosen is AuditKind.POSSESSION
    if needs_subject != (subject is not None):
        expected = "--subject INDEX with --kind possession, and with no other kind"
        found = f"--kind {kind} " + ("without it" if subject is None else f"--subject {subject}")
        step = "Name whose payload the target claimed to hold."
        step = step if needs_subject else "Leave --subject out."
        raise InputError(expected, found, step, "--subject")
    return Claim(round_, target, chosen, NO_SUBJECT if subject is None else subject)


def _check_target(claim: Claim, view: NetworkView, challenger: bytes) -> None:
    entry = view.entries[claim.target] if claim.target < len(view.entries) else None
    if entry is None or entry.status == Status.EMPTY:
        step = "Take an index from: troth status."
        raise _refused(_key(claim), "the index of a participant", f"{claim.target}", step)
    if entry.owner == challenger:
        step = "Use another key; a conviction never pays the convicted."
        raise _refused(_key(claim), "the key of somebody else than the target", "its own", step)


def _check_work(claim: Claim, audit: AuditView | None) -> None:
    step = "Only sampled work with openings can be judged again: troth case list."
    if audit is None:
        raise _refused(_key(claim), "an audit of this round and target", "none is open", step)
    if audit.stage != AuditStage.SETTLED:
        found = f"one in stage {audit.stage.name.lower()}"
        step = "Wait until its seats have revealed; an accusation by the seats needs no bond."
        raise _refused(
            _key(claim), "an audit that its seats have cleared or left unproven", found, step
        )
    if audit.openings_root == ZERO_DIGEST:
        raise _refused(_key(claim), "an audit with openings", "one without any", step)


def _key(claim: Claim) -> AuditKey:
    return claim.round, claim.target, int(claim.kind)


def _refused(key: AuditKey, expected: str, found: str, next_step: str) -> CaseError:
    round_, target, kind = key
    what = f"{kind_text(kind)} case, round {round_}, target {target}"
    return CaseError(expected, found, next_step, what)
