"""Reads of an observer beside Run and roster: rounds, participants, audits, the vault.

Owns: when each of them is read again, and what was read last.
Never: reads an account again that cannot have changed, or sooner than every few seconds.
Next: `observer.py`, which calls; `headers.py` for what the chain has only by hash.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from solders.pubkey import Pubkey

from troth_audit.cases import CaseFile, of_account
from troth_audit.history import closed_in
from troth_audit.newest import NewestEvents
from troth_audit.slashes import Slashes, slashes_in
from troth_cli.observe.fold import taken_entries
from troth_client.network.watch import RPC_FAILURES
from troth_client.telemetry.printable import one_line
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules.oversight import recent_rounds
from troth_coordinator.rules.view import (
    NetworkView,
    ParticipantView,
    RoundFlag,
    RoundView,
    SeedStatus,
)

SEEDS_SECONDS: Final = 5.0
"""Rounds whose seed is not frozen yet are read again so often, while events happen."""
AUDITS_SECONDS: Final = 8.0
"""Audits are read again so often, while events happen."""
ENDPOINTS_SECONDS: Final = 60.0
"""Endpoints are read again so often, and when somebody joins or leaves."""
SLASHES_SECONDS: Final = 10.0
"""Transactions are looked through so often for slashes and closed audits, while money moves."""
MOST_CLOSED: Final = 200
"""Closed audits that are kept: those of the newest rounds."""
_OPEN_SEEDS: Final = (SeedStatus.NONE, SeedStatus.PENDING, SeedStatus.RETARGETED)

Clock = Callable[[], float]


class AccountReads:
    """Rounds, participants and audits of one run as last read."""

    def __init__(self, client: CoordinatorClient, run: Pubkey, clock: Clock) -> None:
        self.participants: dict[int, ParticipantView | None] = {}
        self.cases: tuple[CaseFile, ...] = ()
        self._client = client
        self._run = run
        self._clock = clock
        self._rounds: dict[int, RoundView] = {}
        self._fresh: list[RoundView] = []
        self._read_round = -1
        self._rounds_at = self._audits_at = self._endpoints_at = float("-inf")
        self._rounds_sequence = self._audits_sequence = -1
        self._owners: tuple[tuple[int, bytes], ...] = ()

    async def read(self, view: NetworkView) -> bool:
        """Read what is due and return whether anything changed. Raises RpcError."""
        changed = [
            await self._read_rounds(view),
            await self._read_participants(view),
            await self._read_audits(view),
        ]
        return any(changed)

    def take_closed(self) -> list[RoundView]:
        """Return the accounts of closed rounds that are new or changed since the last call."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def recent(self, rounds: Iterable[int]) -> list[RoundView | None]:
        """Return rounds as last read."""
        return [self._rounds.get(round_) for round_ in rounds]

    @property
    def newest_closed(self) -> RoundView | None:
        """The newest closed round that was read."""
        return self._rounds[max(self._rounds)] if self._rounds else None

    @property
    def endpoints(self) -> dict[int, str]:
        """The announced endpoints by index: texts of strangers."""
        known = self.participants.items()
        return {index: one.endpoint for index, one in known if one is not None and one.endpoint}

    async def _read_rounds(self, view: NetworkView) -> bool:
        """Read closed rounds of the ring once, and again while their seeds are open."""
        run, now = view.run, self._clock()
        has_changed = self._take([view.previous_round])
        wanted = set()
        if run.round != self._read_round:
            ring = range(max(0, run.round - run.params.ring + 1), run.round)
            wanted = {round_ for round_ in ring if round_ not in self._rounds}
        is_time = now - self._rounds_at >= SEEDS_SECONDS
        if is_time and run.event_sequence != self._rounds_sequence:
            recent = self.recent(recent_rounds(view))
            wanted |= {one.round for one in recent if one and one.seed_status in _OPEN_SEEDS}
            self._rounds_at, self._rounds_sequence = now, run.event_sequence
        if wanted:
            has_changed |= self._take(await self._client.read_rounds(self._run, sorted(wanted)))
        self._read_round = run.round
        self._rounds = {
            r: one for r, one in self._rounds.items() if r > run.round - run.params.ring
        }
        return has_changed

    def _take(self, found: Iterable[RoundView | None]) -> bool:
        has_changed = False
        for one in found:
            if one is None or not one.flags & RoundFlag.CLOSED:
                continue
            known = self._rounds.get(one.round)
            has_changed |= known != one
            if known is None or known.included != one.included:
                self._fresh.append(one)
            self._rounds[one.round] = one
        return has_changed

    async def _read_participants(self, view: NetworkView) -> bool:
        now, entries = self._clock(), taken_entries(view)
        owners = tuple((index, bytes(entry.owner)) for index, entry in entries)
        if owners == self._owners and now - self._endpoints_at < ENDPOINTS_SECONDS:
            return False
        keys = [Pubkey.from_bytes(owner) for _, owner in owners]
        found = await self._client.read_participants(self._run, keys) if keys else []
        before, self._owners, self._endpoints_at = self.participants, owners, now
        self.participants = {index: one for (index, _), one in zip(owners, found, strict=True)}
        return self.participants != before

    async def _read_audits(self, view: NetworkView) -> bool:
        before, run, now = self.cases, view.run, self._clock()
        if not run.num_audits:
            self.cases = ()
        elif run.event_sequence != self._audits_sequence and (
            now - self._audits_at >= AUDITS_SECONDS
        ):
            audits = await self._client.find_audits(self._run)
            self.cases = tuple(of_account(audit) for audit in audits)
            self._audits_at, self._audits_sequence = now, run.event_sequence
        return self.cases != before


class VaultReads:
    """Slashes and closed audits of one run, from the newest transactions of its vault.

    `closed`: audits and cases that are over, those of the newest round first.
    """

    def __init__(self, client: CoordinatorClient, run: Pubkey, most: int, clock: Clock) -> None:
        self.found = Slashes((), (), ())
        self.closed: tuple[CaseFile, ...] = ()
        self.is_closed_cut = False
        self._client = client
        self._run = run
        self._most = most
        self._clock = clock
        self._events: NewestEvents | None = None
        self._read_at = float("-inf")
        self._mark: tuple[int, ...] = ()
        self._problem = ""

    @property
    def is_cut(self) -> bool:
        """Whether older transactions than those that were read may hold more slashes."""
        return self._events is not None and self._events.is_cut

    @property
    def warnings(self) -> tuple[str, ...]:
        """The reason why slashes and closed audits may be missing, in words."""
        text = f"slashes and closed audits may be missing: {self._problem}"
        return (text,) if self._problem else ()

    def is_due(self, view: NetworkView) -> bool:
        """Tell whether money has moved as by a slash, or an audit has begun or ended."""
        is_time = self._clock() - self._read_at >= SLASHES_SECONDS
        return view.run.round > 0 and is_time and _money(view) != self._mark

    async def read(self, view: NetworkView, note_change: Callable[[], None]) -> None:
        """Read new transactions. RPC trouble is a warning; the next read goes on."""
        if self._events is None:
            vault = RunAddresses.of(view.run, self._client.program_id).vault
            self._events = NewestEvents(self._client, vault, self._run, self._most)
        problem, found = "", self.found
        try:
            found = slashes_in(await self._events.read())
            self._mark = _money(view)
        except RPC_FAILURES as error:
            problem = one_line(error)
        self._read_at = self._clock()
        if (problem, found) != (self._problem, self.found):
            self._problem = problem
            self._keep(found)
            note_change()

    def _keep(self, found: Slashes) -> None:
        self.found = found
        self.closed, is_more = newest_first(closed_in(found.events))
        self.is_closed_cut = self.is_cut or is_more


def newest_first(closed: Sequence[CaseFile]) -> tuple[tuple[CaseFile, ...], bool]:
    """Return those of the newest rounds, `MOST_CLOSED` at most, and whether there are more.

    `closed` is by round.
    """
    return tuple(reversed(closed[-MOST_CLOSED:])), len(closed) > MOST_CLOSED


def _money(view: NetworkView) -> tuple[int, ...]:
    """Return sums that every slash and every pay-out of an escrow change."""
    run = view.run
    faults = sum(entry.work_faults + entry.seat_faults + entry.strikes for entry in view.entries)
    sums = (run.total_stake, run.total_unbonding, run.total_escrow, run.total_bonds)
    return (*sums, faults, run.num_audits)
