"""Following: the ledger of an archive, kept up with the chain through an RPC node.

Owns: when entries are read, what becomes of a tail that the chain contradicts.
Never: believes an RPC node: the fold compares each close with the events before it.
Next: `keeper.py`; `troth_coordinator/ledger/file.py` for the file.
"""

from collections.abc import Callable
from typing import Final

from solders.pubkey import Pubkey

from troth_client.runtime.files import FULL_DISK, DiskFullError, explain_full_disk
from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.accounts import program_reader
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import AccountMissingError, MalformedReplyError
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.rpc import Account, made_by_program
from troth_coordinator.errors import TrothError
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.errors import LedgerError, LedgerHashError
from troth_coordinator.ledger.file import Ledger, LedgerFile
from troth_coordinator.ledger.follow import Match, Refusals, compare, new_entries
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import RunView

ODD_LOOKS: Final = 8
"""So many looks in a row must contradict the newest entries: an RPC node may lag for some."""
LONGEST_PAUSE: Final = 64
"""Looks between two readings of an RPC node whose answers the chain contradicts."""

Take = Callable[[Event], None]


class Following:
    """The ledger of one run, and the Run account as it was read last.

    `is_behind`: the account has absorbed other events than those of the ledger, or more.
    `take` receives each event once; `begin_anew` is called before all of them come again.
    """

    def __init__(
        self,
        client: CoordinatorClient,
        ledger: LedgerFile,
        events: EventSink,
        take: Take,
        begin_anew: Callable[[], None],
    ) -> None:
        self.ledger = ledger
        self.account: Account | None = None
        self.view: RunView | None = None
        self.slot = 0
        self.is_behind = True
        self._client = client
        self._run = Pubkey.from_string(ledger.head.run)
        self._events = events
        self._take, self._begin_anew = take, begin_anew
        self._reader = ledger.head.reader()
        self._refusals = Refusals()
        self._pause = self._num_odd = 0

    @property
    def has_begun(self) -> bool:
        """Whether the run is known to be there."""
        return self.account is not None or self.ledger.last is not None

    @property
    def is_finished(self) -> bool:
        """Whether the run is over, and maybe closed since."""
        is_closed = self.account is None and self.ledger.last is not None
        return is_closed or (self.view is not None and self.view.phase == Phase.FINISHED)

    @property
    def is_commit_over(self) -> bool:
        """Whether the Commit phase of the open round has ended on chain."""
        return self.view is not None and self.view.phase in (Phase.ATTEST, Phase.FINISHED)

    async def look(self) -> bool:
        """Read the Run account, and the entries since; return whether anything has changed.

        Raises AccountMissingError where there is no such run, DiskFullError, and what RPC nodes
        raise.
        """
        if self._pause:
            self._pause -= 1
            return False
        await self._renew()
        slot, (account,) = await self._client.rpc.get_accounts([self._run])
        if account is None and self.ledger.last is None:
            raise AccountMissingError("Run", str(self._run))
        if self.ledger.last is not None:
            account = made_by_program(account)  # anybody may pay to where a closed run was
        view = None
        if account is not None:
            view = program_reader(self._client.program_id).run(self._run, account)
        has_changed = account != self.account
        if has_changed or self.is_behind:
            self.is_behind = True
            has_changed |= await self._catch_up()
            fold = self.ledger.fold
            self.is_behind = view is not None and compare(fold, view).match is not Match.WHOLE
        self._num_odd = self._num_odd + 1 if self.is_behind and not has_changed else 0
        self.slot, self.account, self.view = slot, account, view
        if view is not None and self._num_odd >= ODD_LOOKS:
            self._refuse(self._contradiction(view))
        return has_changed

    def replay(self) -> None:
        """Hand on all events of the file, from the first one on."""
        self._begin_anew()
        for entry in Ledger.of(self.ledger.path).entries():
            self._hand_on(entry)

    def _contradiction(self, view: RunView) -> LedgerHashError:
        fold = self.ledger.fold
        return LedgerHashError(
            "newest entries",
            f"{view.event_sequence} events with the chain hash {view.chain_hash.hex()}",
            f"{fold.next_sequence} with {fold.hash.hex()}",
            "Reading them again; name another RPC node with --rpc if that does not help.",
        )

    async def _catch_up(self) -> bool:
        """Append what is new; a tail that is proven wrong is cut off and read again later."""
        before = self.ledger.last
        try:
            async for entries in new_entries(self._client, self.ledger):
                self._append(entries)
        except MalformedReplyError as error:
            # It may not know our last entry: it lags, or a fork took that entry back.
            self._num_odd += 1
            if self._num_odd < ODD_LOOKS:
                raise
            self._refuse(error)
        except LedgerError as error:
            self._refuse(error)
        else:
            self._refusals.end()
        return self.ledger.last != before

    def _refuse(self, error: TrothError) -> None:
        """Report entries that the chain contradicts, and drop all that no close has proven."""
        self._num_odd = 0
        self._pause = min(2**self._refusals.count, LONGEST_PAUSE) - 1
        self._refusals.add()
        self._events.emit(
            "ledger_refused", count=self._refusals.count, subject=error.subject, reason=str(error)
        )
        before = self.ledger.last
        self.ledger.cut_to_proven()
        if self.ledger.last != before:
            self.replay()

    async def _renew(self) -> None:
        """Try a new start where that is due: an RPC node may have shown closes of its own once."""
        with explain_full_disk(self.ledger.path):
            is_proven = await self._refusals.renew(self._client, self.ledger)
        if is_proven:
            self._events.emit("ledger_renewed")
            self.replay()

    def _append(self, entries: list[Entry]) -> None:
        try:
            self.ledger.append(entries)
        except OSError as error:
            self.replay()  # some of them may be in the file
            if error.errno not in FULL_DISK:
                raise
            raise DiskFullError(
                f"room for {self.ledger.path}",
                "no space left",
                "Nothing that was stored is lost: free some space.",
            ) from error
        for entry in entries:
            self._hand_on(entry)

    def _hand_on(self, entry: Entry) -> None:
        for event in self._reader.events(entry):
            self._take(event)
