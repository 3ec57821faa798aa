"""Whole runs with one cheat among honest members, and the books of what anybody lost.

Owns: the cast, the windows, and the assertions that every story ends with: the verdict, the slash
to the lamport, the vault, the stakes of the honest. The cheats that the demo offers by name are in
troth_simulation.cheats, the others in cheating_ports.py.
Next: the test_cheating_trainers_* files.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from solders.pubkey import Pubkey

from support.event_fields import text
from support.fields import assert_fields
from support.program.audits import INCINERATOR
from support.runs import (
    BOTH,
    WINDOWS,
    Chronicle,
    RunFactory,
    assert_conserved,
    assert_one_root_per_round,
    member,
    start_members,
)
from troth_attestation import slashing
from troth_attestation.quorum import CaseOutcome
from troth_attestation.slashing import Funds, Prices, SlashIntent
from troth_attestation.verdict import Reason, VerdictKind
from troth_client.network.errors import BarredError
from troth_client.participant.assembly import Ports
from troth_coordinator.chain.accounts import program_reader
from troth_coordinator.chain.case_instructions import release_escrow
from troth_coordinator.chain.event_types_audits import (
    AuditClosed,
    AuditSettled,
    CaseSettled,
    Penalised,
)
from troth_coordinator.chain.rpc import Account
from troth_coordinator.rules.audits import FIRST_SEATS
from troth_coordinator.rules.view import EntryView, Role
from troth_localnet.history import LandedTransaction
from troth_simulation.cheats.catalogue import CHEATS
from troth_simulation.cheats.cheat import HONEST_ROUNDS
from troth_simulation.cheats.ports import cheating
from troth_simulation.in_process import InProcessRun, SimulatedMember

HONEST = ("ada", "bob", "cyd", "dan")
CHEAT = "mal"
MAL = len(HONEST)
"""The cheat's index: it joins last."""
ALWAYS = {"p_base_ppm": 1_000_000, "p_new_ppm": 1_000_000, "audit_cap": 16, "seat_load": 15}
"""Every included payload is audited: when a cheat is caught depends on nothing but the cheat."""

FIRST_LIE = HONEST_ROUNDS
"""The round of the first payload that is not honest."""

Wrap = Callable[[SimulatedMember, Ports], Ports]


@dataclass(frozen=True, slots=True)
class Loss:
    """Lamports taken from somebody: the event, and its entry right before and after."""

    event: CaseSettled | Penalised
    before: EntryView
    after: EntryView
    vault_change: int
    burned: int
    undone: int
    """Reward of the judged round, which went back to the pool right before."""

    @property
    def funds(self) -> Funds:
        """The funds before the loss."""
        funds = funds_of(self.before)
        return replace(funds, unvested=funds.unvested - self.undone)


class Books(Chronicle):
    """Writes down, as transactions land, who lost what."""

    def __init__(self, run: InProcessRun) -> None:
        super().__init__(run)
        self._run = run
        self._entries = self._read()
        self.losses: list[Loss] = []
        self.min_stake = run.settings.chain.min_stake_lamports

    def transaction_landed(self, landed: LandedTransaction, changed: Sequence[Pubkey]) -> None:
        num_known = len(self.events)
        super().transaction_landed(landed, changed)
        before, self._entries = self._entries, self._read()
        for event in self.events[num_known:]:
            if isinstance(event, Penalised):
                self._lose(event, event.index, before, landed, num_known)
            elif isinstance(event, CaseSettled) and event.outcome == CaseOutcome.CONVICTED.value:
                self._lose(event, event.target, before, landed, num_known)

    def of(self, index: int) -> list[Loss]:
        """The losses of one participant, oldest first."""
        return [loss for loss in self.losses if _index(loss.event) == index]

    def convictions(self, index: int = MAL) -> list[Loss]:
        return [loss for loss in self.of(index) if isinstance(loss.event, CaseSettled)]

    def settled(self, round_: int, target: int = MAL) -> list[AuditSettled]:
        """The decision of the seats about a payload."""
        return self.named("AuditSettled", round=round_, target=target)

    def closed(self, case: CaseSettled) -> AuditClosed | None:
        """How the audit of a case was closed; None while its escrow waits."""
        about = {name: getattr(case, name) for name in ("round", "target", "audit_kind")}
        return next(iter(self.named("AuditClosed", **about)), None)

    def _lose(
        self,
        event: CaseSettled | Penalised,
        index: int,
        before: tuple[EntryView, ...],
        landed: LandedTransaction,
        num_known: int,
    ) -> None:
        moved = changes(landed)
        vault, burned = moved.get(self._run.at.vault, 0), moved.get(INCINERATOR, 0)
        undone = sum(
            end.reward_undone
            for end in self.events[num_known:]
            if isinstance(end, AuditSettled | CaseSettled) and end.target == index
        )
        after = self._entries[index]
        self.losses.append(Loss(event, before[index], after, vault, burned, undone))

    def _read(self) -> tuple[EntryView, ...]:
        address = self._run.at.roster
        found = self._run.chain.accounts.get(address)
        assert found is not None
        account = Account(found.lamports, found.owner, bytes(found.data))
        return program_reader().roster(address, account)


def changes(landed: LandedTransaction) -> dict[Pubkey, int]:
    """Lamports that a transaction added to each account that it names."""
    pairs = zip(landed.pre_balances, landed.post_balances, strict=True)
    return {
        key: after - before for key, (before, after) in zip(landed.keys.all, pairs, strict=True)
    }


def _index(event: CaseSettled | Penalised) -> int:
    return event.index if isinstance(event, Penalised) else event.target


def funds_of(entry: EntryView) -> Funds:
    return Funds(entry.claimable, sum(entry.bucket_amount), entry.stake, entry.unbonding)


def prices(run: InProcessRun) -> Prices:
    chain = run.settings.chain
    return Prices(chain.reward_per_payload, chain.witness_fee, chain.recompute_cost)


def work_cheat(name: str) -> Wrap:
    """A cheat of the catalogue that `troth demo --cheat` offers."""
    return lambda one, ports: cheating(CHEATS[name], ports) if one.name == CHEAT else ports


async def stage(
    run_factory: RunFactory, wrap: Wrap, *, num_lies: int = 1, **changes: int
) -> tuple[InProcessRun, Books]:
    """A run with the honest and the cheat, who trains only; it is about to begin.

    It ends after so many payloads that are not honest. `changes` are those of `settings_of`.
    """
    settings = {"min_members": 3, **WINDOWS, **ALWAYS, **changes}
    run = await run_factory.create(FIRST_LIE + num_lies, **settings)
    run.wrap = wrap
    books = Books(run)
    await start_members(run, HONEST, BOTH)
    await start_members(run, [CHEAT], Role.TRAINER)
    assert member(run, CHEAT).index == MAL
    return run, books


async def play_out(run: InProcessRun) -> None:
    """Let the run end, its audits be decided, and every escrow be paid once its time has come.

    Nobody may fail; but the cheat ends when it is barred.
    """
    for one in run.members:
        assert one.task is not None
        try:
            await one.task
        except BarredError:
            assert one.name == CHEAT
    await run.close()
    for audit in await run.client.find_audits(run.at.run):
        view = await run.view()
        end = max(audit.stage_end, audit.case_end) + view.run.pause_total_slots
        if view.slot <= end:
            run.chain.advance(end + 1 - view.slot)
        step = release_escrow(run.at, run.authority.pubkey(), audit)
        await run.client.send([step], [run.authority])


# The assertions at the end of every story.


def assert_slashed(loss: Loss, intent: SlashIntent) -> None:
    """Exactly what the fault costs was taken, from where the rules say."""
    taken = slashing.take(intent, loss.funds)
    event = loss.event
    assert_fields(
        event,
        stake=taken.stake,
        unbonding=taken.unbonding,
        unvested=taken.unvested,
        shortfall=taken.shortfall,
    )
    assert taken.total > 0
    if isinstance(event, Penalised):
        assert event.claimable == taken.claimable
    assert loss.after.claimable == loss.before.claimable - taken.claimable
    assert loss.after.stake == loss.before.stake - taken.stake
    assert loss.after.unbonding == loss.before.unbonding - taken.unbonding
    unvested = sum(loss.before.bucket_amount) - loss.undone - taken.unvested
    assert sum(loss.after.bucket_amount) == unvested


def assert_split_at_once(loss: Loss) -> None:
    """A small penalty: the fire, in the same transaction."""
    event = loss.event
    assert isinstance(event, Penalised)
    rewards = event.claimable + event.unvested
    parts = slashing.fine(event.stake + event.unbonding + rewards)
    assert_fields(event, acquitted=0, burned=parts.burned)
    assert loss.burned == parts.burned == -loss.vault_change


def assert_convicted_of_work(books: Books, loss: Loss) -> None:
    """P3 into escrow, and from there into the fire."""
    assert isinstance(loss.event, CaseSettled)
    assert_slashed(loss, slashing.work(loss.funds, is_repeated=False))
    assert loss.vault_change == 0, "the escrow stays in the vault"
    closed = books.closed(loss.event)
    taken = loss.event.stake + loss.event.unbonding + loss.event.unvested
    parts = slashing.split(taken, has_bond=False)
    burned = parts.burned - loss.event.juror_fees
    assert closed is not None
    assert_fields(closed, pool=0, burned=burned, challenger=0, returned=0)
    assert loss.after.work_faults == 1
    assert loss.after.stake < books.min_stake, "it must top up before its next round"


def verdicts(run: InProcessRun, round_: int, target: int = MAL) -> dict[str, str]:
    """The finding of each seat in an audit, in its own words."""
    return {
        one.name: text(event, "reason")
        for one in run.members
        for event in one.events.named("judged")
        if (event["round"], event["target"]) == (round_, target)
    }


def assert_found(
    run: InProcessRun, round_: int, kind: VerdictKind, reason: Reason, target: int = MAL
) -> None:
    """All seats of an audit found the same, for the reason that the story tells."""
    found = verdicts(run, round_, target)
    assert len(found) >= FIRST_SEATS
    for words in found.values():
        assert words.startswith(f"{kind.name.lower()}: {reason.value}"), words


async def assert_honest_untouched(run: InProcessRun, books: Books) -> None:
    """No honest stake moved, no honest was struck, all hold the same weights, nothing is lost."""
    view = await run.view()
    stake = run.settings.chain.min_stake_lamports
    for one in run.members:
        entry = view.entries[one.index]
        if one.name != CHEAT:
            assert books.of(one.index) == [], one.name
            assert_fields(entry, one.name, stake=stake, unbonding=0, strikes=0)
    assert_one_root_per_round(run)
    await assert_conserved(run)
