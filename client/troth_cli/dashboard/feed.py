"""The messages to the page: the observed run as JSON, all of it first, then what changed.

Owns: the stakes by round, the subjects whose transactions may be asked for.
Never: serves anything; `server.py` does. Never signs.
Next: `../observe/observer.py`, which reads the run.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from solders.pubkey import Pubkey

from troth_audit.transactions import read_transactions
from troth_cli.observe.observer import Observer
from troth_cli.observe.record import Observation
from troth_cli.view.output import Json
from troth_coordinator.chain.addresses import audit_address, participant_address
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.rpc_health import node_name
from troth_coordinator.rules.audit_view import AuditKind

State = dict[str, Json]

MAX_TRANSACTIONS: Final = 50
MAX_STAKES: Final = 2_048
"""Rounds whose stakes are kept; of a longer watch, the older ones go."""
BEAT_SECONDS: Final = 5.0
"""A page hears something so often: it tells a quiet run from a dead server."""
_EXPLORER: Final = "https://explorer.solana.com/tx/"


class UnknownSubjectError(Exception):
    """Nobody by that name has transactions in this run."""


@dataclass(slots=True)
class Feed:
    """One observed run. `cluster`: the public cluster's name, or None; `rpc_url` is asked then."""

    client: CoordinatorClient
    run: Pubkey
    observer: Observer
    rpc_url: str
    cluster: str | None
    _stakes: dict[int, Json] = field(default_factory=dict)

    async def keep_stakes(self) -> None:
        """Keep the stakes of each round, also while no page is open; without end."""
        while True:
            seen = self.observer.latest()
            self._note_stakes(seen)
            await self.observer.wait_beyond(seen.revision, BEAT_SECONDS)

    def state(self, since: Observation | None = None) -> State:
        """Return what is known now; of rounds, only those that differ from `since`."""
        seen = self.observer.latest()
        newest = list(self._stakes.values())
        return {
            **seen.to_json(since=since),
            "cluster": self.cluster or "a local cluster",
            "stakes": newest if since is None else newest[-2:],
        }

    async def follow(self) -> AsyncIterator[State]:
        """Yield the whole state, then a state for each change, without end."""
        before: Observation | None = None
        while True:
            seen = self.observer.latest()
            yield self.state(before)
            before = seen
            await self.observer.wait_beyond(seen.revision, BEAT_SECONDS)

    async def transactions(self, subject: str) -> State:
        """Return the newest transactions of participant/INDEX or audit/ROUND/TARGET/KIND.

        Raises UnknownSubjectError, RpcError.
        """
        found = await read_transactions(
            self.client, self._address(subject), self.run, MAX_TRANSACTIONS
        )
        lines: list[Json] = [
            {
                "signature": line.signature,
                "slot": line.slot,
                "has_failed": line.has_failed,
                "events": list(line.events),
                "url": self._explorer(line.signature),
            }
            for line in found.lines
        ]
        return {"subject": subject, "transactions": lines, "is_cut": found.is_cut}

    def _address(self, subject: str) -> Pubkey:
        program = self.client.program_id
        match subject.split("/"):
            case ["participant", index] if _is_number(index):
                owners = {one.index: one.owner for one in self.observer.latest().participants}
                if int(index) in owners:
                    owner = Pubkey.from_string(owners[int(index)])
                    return participant_address(self.run, owner, program)
            case ["audit", round_, target, kind] if _is_number(round_) and _is_number(target):
                kinds = {one.name.lower(): int(one) for one in AuditKind}
                if kind in kinds and int(target) < 64 and int(round_) < 2**32:
                    return audit_address(self.run, int(round_), int(target), kinds[kind], program)
        raise UnknownSubjectError(
            f"expected participant/INDEX or audit/ROUND/TARGET/KIND of this run, found {subject!r}"
        )

    def _explorer(self, signature: str) -> str:
        if self.cluster is not None:
            return f"{_EXPLORER}{signature}?cluster={self.cluster}"
        # Path and query of a node's address may be a key: the explorer's site never sees them.
        node = quote(node_name(self.rpc_url), safe="")
        return f"{_EXPLORER}{signature}?cluster=custom&customUrl={node}"

    def _note_stakes(self, seen: Observation) -> None:
        """Keep the stakes at this round; the chain remembers only those of now."""
        stakes = [[one.index, one.stake_lamports] for one in seen.participants]
        if stakes:
            self._stakes[seen.run.round] = {"round": seen.run.round, "stakes": stakes}
        while len(self._stakes) > MAX_STAKES:
            del self._stakes[min(self._stakes)]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10
