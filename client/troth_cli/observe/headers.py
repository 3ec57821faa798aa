"""The headers of closed rounds: what is still to be asked for, and what came of it.

Owns: the order (newest round first), the tries, and the holders that are known.
Never: asks for a header again that was found. Next: `losses.py` for one round.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from troth_audit.rounds import closed_round
from troth_cli.observe.losses import read_losses
from troth_cli.observe.round_book import RoundBook
from troth_client.errors import ClientError
from troth_client.run_files.fetch import parse_config
from troth_client.run_files.files import LIMITS
from troth_client.telemetry.losses import is_sound, round_loss
from troth_client.transport.base import BlobId, BlobKind, Transport
from troth_client.transport.endpoint import is_store
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.view import RoundView

MOST_TRIES: Final = 3
RETRY_SECONDS: Final = 8.0
"""The second try comes so much later, the third twice as much."""
MOST_CONFIG_HOLDERS: Final = 6
MOST_WANTED: Final = 128
"""Rounds that wait. Holders may be slower than rounds close, and serve no old round for long."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    account: RoundView
    losses: Mapping[int, int] = field(default_factory=dict)
    num_tries: int = 0
    not_before: float = 0.0

    @property
    def is_complete(self) -> bool:
        return len(self.losses) >= bitmap.count(self.account.included)


class HeaderReader:
    """Fills a book with the losses of its rounds. `others` are asked beside members."""

    def __init__(
        self,
        transport: Transport,
        book: RoundBook,
        others: Sequence[str],
        clock: Callable[[], float],
    ) -> None:
        self.last_losses: dict[int, tuple[int, int]] = {}
        self._transport = transport
        self._book = book
        self._others = tuple(others)
        self._clock = clock
        self._wanted: dict[int, _Wanted] = {}
        self._endpoints: Mapping[int, str] = {}
        self._num_config_tries = 0

    def want(self, accounts: Iterable[RoundView]) -> None:
        """Ask for the headers of these closed rounds, from the beginning; the oldest may go."""
        for account in accounts:
            self._wanted[account.round] = _Wanted(account)
        for round_ in sorted(self._wanted)[:-MOST_WANTED]:
            del self._wanted[round_]

    @property
    def num_wanted(self) -> int:
        """How many rounds are still to be asked for."""
        return len(self._wanted)

    def use_holders(self, endpoints: Mapping[int, str]) -> None:
        """Ask these members from now on, by index."""
        self._endpoints = endpoints

    @property
    def is_due(self) -> bool:
        """Whether there is a round to ask for now."""
        return self._next() is not None

    async def read(self, config_hash: bytes, note_change: Callable[[], None]) -> None:
        """Read all that is due, the newest round first."""
        await self._ask_for_holders(config_hash)
        while (one := self._next()) is not None:
            round_ = one.account.round
            losses = await read_losses(self._transport, one.account, self._holders, one.losses)
            self._transport.drop_before(round_)
            tries = one.num_tries + 1
            later = self._clock() + RETRY_SECONDS * tries
            one = replace(one, losses=losses, num_tries=tries, not_before=later)
            if self._wanted.get(round_, one).account == one.account:
                self._keep(one)
                note_change()

    def _keep(self, one: _Wanted) -> None:
        round_ = one.account.round
        for index, loss in one.losses.items():
            known = self.last_losses.get(index)
            if is_sound(loss) and (known is None or known[0] <= round_):
                self.last_losses[index] = (round_, loss)
        chain = closed_round(one.account)
        if chain is not None:
            self._book.put_loss(chain, round_loss(one.losses.values()))
        is_done = one.is_complete or one.num_tries >= MOST_TRIES
        if is_done:
            self._wanted.pop(round_, None)
        elif round_ in self._wanted:
            self._wanted[round_] = one

    def _next(self) -> _Wanted | None:
        now = self._clock()
        due = [round_ for round_, one in self._wanted.items() if one.not_before <= now]
        return self._wanted[max(due)] if due else None

    def _holders(self, index: int) -> list[str]:
        """Return whom to ask: the trainer, then hubs and stores, then members by merit."""
        own = [self._endpoints[index]] if index in self._endpoints else []
        ranked = self._transport.ranked(self._endpoints.values())
        return list(dict.fromkeys([*own, *self._others, *ranked]))

    async def _ask_for_holders(self, config_hash: bytes) -> None:
        """Learn the run's hubs and stores from its config, which a member may serve."""
        if self._num_config_tries >= MOST_TRIES:
            return
        self._num_config_tries += 1
        wanted = BlobId(0, BlobKind.CONFIG, config_hash)
        holders = self._holders(-1)[:MOST_CONFIG_HOLDERS]
        try:
            most = LIMITS[BlobKind.CONFIG]
            data = await self._transport.fetch(wanted, holders, most, bytes)
            named = parse_config(data).network.relays
        except ClientError:
            return
        self._num_config_tries = MOST_TRIES
        self._transport.use_stores(filter(is_store, named), signs=False)
        self._others = tuple(dict.fromkeys([*self._others, *named]))
