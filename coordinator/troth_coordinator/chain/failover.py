"""`FailoverRpc`: the Rpc port over any number of nodes; one that fails is passed over.

Owns: the order in which nodes are asked, and limits in seconds for one that is silent.
Never: sleeps. A call for which no node may be asked now fails at once, and the caller looks again.
Nor does it compare what two nodes say; agreement.py does.
Next: rpc_health.py for rests, limits, slots and reports; known_accounts.py; http_rpc.py for one
node.

    ask the first ready node -> silent for 1.5 s, broken, limited or behind: it rests, ask the next
    no node is ready         -> those that rest are asked again about once a second
    a rest is over           -> the node is asked for its slot beside the others; then it is back
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVar

from solders.hash import Hash
from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_coordinator.chain.errors import (
    ChainError,
    MalformedReplyError,
    RpcError,
    RpcLimitedError,
    RpcRefusedError,
    RpcTimeoutError,
    RpcUnreachableError,
    TransactionRejectedError,
    UnreadableRecordError,
)
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.known_accounts import KnownAccounts
from troth_coordinator.chain.rpc import (
    Account,
    BytesAt,
    Listed,
    Rpc,
    Simulation,
    Status,
    TransactionRecord,
)
from troth_coordinator.chain.rpc_health import (
    CHECK_SECONDS,
    Node,
    NodeHealth,
    RpcReport,
    Silent,
    names_of,
)

SILENT_SECONDS: Final = 1.5
"""A node that has not answered for so long is passed over where there is another one."""
LONG_SILENT_SECONDS: Final = 4.0
"""The same for answers that may be megabytes."""
ALL_SILENT_SECONDS: Final = 4.5
"""All nodes before the last may take so long together: the last is asked within five seconds."""
MAX_SENT: Final = 256
"""Transactions that are recognised when they are sent again."""
_SIGNATURE_BYTES: Final = 65

Answer = TypeVar("Answer")
Request = Callable[[Rpc], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why another node is asked as well. Without trouble the answer holds if nobody has another."""

    what: str
    is_trouble: bool = True


Judge = Callable[[Node, Answer], Doubt | None]


class FailoverRpc:
    """Several nodes as one `Rpc`, by name and in the order of preference.

    clock: seconds that only grow. random: jitter. Use `over` for addresses; then close.
    Where every node fails, the error is the last node's.
    """

    def __init__(
        self,
        nodes: Mapping[str, Rpc],
        *,
        report: RpcReport | None = None,
        clock: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        now = clock()
        # Those in reserve are looked at beside the first call: their state is known when needed.
        known = [
            Node(name, rpc, checked_at=now - CHECK_SECONDS, moved_at=now)
            for name, rpc in nodes.items()
        ]
        self._health = NodeHealth(known, clock, random or Random(), report or Silent())
        self._known = KnownAccounts()
        self._sent: dict[bytes, None] = {}
        self._checks: set[asyncio.Task[None]] = set()
        self._open = contextlib.AsyncExitStack()

    @classmethod
    def over(
        cls, urls: Sequence[str], report: RpcReport | None = None, random: Random | None = None
    ) -> FailoverRpc:
        """Return the nodes behind these addresses; each is named by scheme and host."""
        nodes: dict[str, Rpc] = {}
        opened = contextlib.AsyncExitStack()
        for name, url in names_of(urls).items():
            one = HttpRpc(url, name=name)
            opened.push_async_callback(one.close)
            nodes[name] = one
        made = cls(nodes, report=report, random=random)
        made._open = opened
        return made

    async def __aenter__(self) -> FailoverRpc:
        """Open for use in `async with`."""
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """End what is under way and close the connections."""
        for check in list(self._checks):
            check.cancel()
        await asyncio.gather(*self._checks, return_exceptions=True)
        await self._open.aclose()

    @property
    def nodes(self) -> dict[str, Rpc]:
        """Every node by its name, to compare what they say."""
        return {node.name: node.rpc for node in self._health.nodes}

    async def get_slot(self) -> int:
        """See Rpc.get_slot."""
        return await self._ask(lambda rpc: rpc.get_slot(), self._behind)

    async def block_height(self) -> int:
        """See Rpc.block_height."""
        return await self._ask(lambda rpc: rpc.block_height())

    async def get_accounts(self, addresses: Sequence[Pubkey]) -> tuple[int, list[Account | None]]:
        """See Rpc.get_accounts. An account that was there and is not is asked of others, too."""

        def judge(node: Node, found: tuple[int, list[Account | None]]) -> Doubt | None:
            slot, accounts = found
            behind, strange = self._behind(node, slot), self._known.complaint(addresses, accounts)
            if behind or strange:
                return behind or Doubt(strange)
            gone = self._known.loss(addresses, accounts)
            return Doubt(gone, is_trouble=False) if gone else None

        slot, accounts = await self._ask(lambda rpc: rpc.get_accounts(addresses), judge)
        self._known.remember(addresses, accounts)
        return slot, accounts

    async def get_program_accounts(
        self, program: Pubkey, filters: Sequence[int | BytesAt]
    ) -> list[tuple[Pubkey, Account]]:
        """See Rpc.get_program_accounts."""
        return await self._ask(
            lambda rpc: rpc.get_program_accounts(program, filters), limit=LONG_SILENT_SECONDS
        )

    async def latest_blockhash(self) -> tuple[Hash, int]:
        """See Rpc.latest_blockhash."""
        return await self._ask(lambda rpc: rpc.latest_blockhash())

    async def send(self, raw: bytes, *, skip_preflight: bool = False) -> Signature:
        """See Rpc.send. Bytes that were sent before go to every node: one may have lost them."""
        key = bytes(raw[:_SIGNATURE_BYTES])
        is_again = key in self._sent
        self._sent[key] = None
        while len(self._sent) > MAX_SENT:
            del self._sent[next(iter(self._sent))]

        def request(rpc: Rpc) -> Awaitable[Signature]:
            return rpc.send(raw, skip_preflight=skip_preflight)

        if is_again and len(self._health.nodes) > 1:
            return await self._tell_all(request)
        return await self._ask(request)

    async def simulate(self, raw: bytes) -> Simulation:
        """See Rpc.simulate."""
        return await self._ask(lambda rpc: rpc.simulate(raw))

    async def statuses(
        self, signatures: Sequence[Signature], *, search_history: bool = False
    ) -> list[Status | None]:
        """See Rpc.statuses. Every node is asked about what is not in the history of one."""

        def request(rpc: Rpc) -> Awaitable[list[Status | None]]:
            return rpc.statuses(signatures, search_history=search_history)

        found = await self._ask(request)
        if not search_history or None not in found or len(self._health.nodes) == 1:
            return found
        for other in await self._ask_all(request):
            if not isinstance(other, BaseException):
                found = [one or two for one, two in zip(found, other, strict=True)]
        return found

    async def transaction(self, signature: Signature) -> TransactionRecord | None:
        """See Rpc.transaction."""
        return await self._ask(lambda rpc: rpc.transaction(signature), limit=LONG_SILENT_SECONDS)

    async def signatures(
        self, address: Pubkey, *, before: Signature | None = None, until: Signature | None = None
    ) -> list[Listed]:
        """See Rpc.signatures."""
        return await self._ask(
            lambda rpc: rpc.signatures(address, before=before, until=until),
            limit=LONG_SILENT_SECONDS,
        )

    async def recent_fees(self, accounts: Sequence[Pubkey]) -> list[int]:
        """See Rpc.recent_fees."""
        return await self._ask(lambda rpc: rpc.recent_fees(accounts))

    async def slot_micros(self) -> int | None:
        """See Rpc.slot_micros."""
        return await self._ask(lambda rpc: rpc.slot_micros())

    async def genesis_hash(self) -> bytes:
        """See Rpc.genesis_hash."""
        return await self._ask(lambda rpc: rpc.genesis_hash())

    async def request_airdrop(self, address: Pubkey, lamports: int) -> Signature:
        """See Rpc.request_airdrop."""
        return await self._ask(lambda rpc: rpc.request_airdrop(address, lamports))

    async def _ask(
        self,
        request: Request[Answer],
        judge: Judge[Answer] | None = None,
        limit: float = SILENT_SECONDS,
    ) -> Answer:
        """Return the first good answer; else one that is behind or strange; else raise."""
        nodes = self._health.candidates()
        if not nodes:
            raise self._health.resting_error()
        self._check_others(nodes[0])
        limit = min(limit, ALL_SILENT_SECONDS / max(1, len(nodes) - 1))
        doubtful: list[tuple[Node, Doubt, Answer]] = []
        failure: ChainError | None = None
        for position, node in enumerate(nodes):
            if position > 0 and node is nodes[position - 1] and not _is_broken(failure):
                break
            try:
                answer = await self._attempt(node, request, limit, is_last=node is nodes[-1])
            except (RpcError, TransactionRejectedError) as error:
                failure = _weightier(failure, self._sorted(node, error))
                continue
            doubt = judge(node, answer) if judge is not None else None
            if doubt is None:
                for other, about, _answer in doubtful:
                    self._health.failed(other, about.what)
                self._health.answered(node)
                return answer
            doubtful.append((node, doubt, answer))
        if doubtful:
            return self._least_doubtful(doubtful)
        if failure is None:
            raise self._health.resting_error()
        raise failure

    def _sorted(self, node: Node, error: RpcError | TransactionRejectedError) -> ChainError:
        """Note what an error says of a node; raise it if it is the answer to the question."""
        if isinstance(error, TransactionRejectedError):
            self._health.answered(node)
            # Another node may be ahead of this one, and know the blockhash.
            if error.failure.kind != "BlockhashNotFound":
                raise error
        elif isinstance(error, RpcRefusedError | UnreadableRecordError):
            self._health.answered(node)  # it may lack one method; strangers land odd transactions
        else:
            self._health.failed(node, error)
        return error

    def _least_doubtful(self, doubtful: list[tuple[Node, Doubt, Answer]]) -> Answer:
        """Nobody has a better answer: it is so, the chain stands still, or a node is behind."""
        for node, doubt, _answer in doubtful:
            node.rest_until = None
            if doubt.is_trouble:
                self._health.suffer(node, doubt.what)
            else:
                self._health.answered(node)
        _node, _doubt, answer = max(doubtful, key=lambda one: (not one[1].is_trouble, one[0].slot))
        return answer

    def _behind(self, node: Node, slot: int) -> Doubt | None:
        what = self._health.complaint(node, slot)
        return Doubt(what) if what else None

    async def _attempt(
        self, node: Node, request: Request[Answer], limit: float, *, is_last: bool
    ) -> Answer:
        """Ask one node. Silence is reported after the limit, and ends the attempt unless last."""
        self._health.asking(node)
        asking = asyncio.ensure_future(request(node.rpc))
        try:
            done, _pending = await asyncio.wait({asking}, timeout=limit)
            if not done:
                silence = f"no answer for {limit:.1f} s"
                if not is_last:
                    raise RpcTimeoutError(node.name, silence)
                self._health.suffer(node, silence, is_certain=True)
            return await asking
        finally:
            if not asking.done():
                asking.cancel()
                asking.add_done_callback(_forget)

    async def _ask_all(self, request: Request[Answer]) -> list[Answer | BaseException]:
        """Ask every node that does not rest; return answers and errors."""
        nodes = [node for node in self._health.nodes if node.rest_until is None]

        async def one(node: Node) -> Answer:
            try:
                answer = await self._attempt(node, request, SILENT_SECONDS, is_last=False)
            except (RpcError, TransactionRejectedError) as error:
                raise self._sorted(node, error) from error
            self._health.answered(node)
            return answer

        return await asyncio.gather(*(one(node) for node in nodes), return_exceptions=True)

    async def _tell_all(self, request: Request[Answer]) -> Answer:
        """Return the first answer in the order of nodes; one that takes it is enough."""
        failure: ChainError | None = None
        for outcome in await self._ask_all(request):
            if isinstance(outcome, ChainError):
                failure = _weightier(failure, outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                return outcome
        if failure is None:
            return await self._ask(request)
        raise failure

    def _check_others(self, asked: Node) -> None:
        for node in self._health.due_for_check(asked):
            check = asyncio.create_task(self._check(node), name=f"check of {node.name}")
            self._checks.add(check)
            check.add_done_callback(self._checks.discard)

    async def _check(self, node: Node) -> None:
        """Ask a node in reserve, or one whose rest is over, for its slot."""
        try:
            slot = await self._attempt(
                node, lambda rpc: rpc.get_slot(), SILENT_SECONDS, is_last=False
            )
        except RpcError as error:
            self._health.failed(node, error)
            return
        behind = self._health.complaint(node, slot)
        if behind:
            self._health.failed(node, behind)
        else:
            self._health.answered(node)


def _weightier(one: ChainError | None, two: ChainError) -> ChainError:
    """Return the failure that says more: an answer of the chain, then of a node, then silence."""

    def weight(error: ChainError) -> int:
        if isinstance(error, TransactionRejectedError):
            return 2
        return int(isinstance(error, RpcRefusedError | RpcLimitedError))

    return two if one is None or weight(two) >= weight(one) else one


def _is_broken(failure: ChainError | None) -> bool:
    """Tell whether the same node may do better at once: not if it refused, limits, or is slow."""
    return failure is None or type(failure) in (RpcUnreachableError, MalformedReplyError)


def _forget(asking: asyncio.Future[Answer]) -> None:
    if not asking.cancelled():
        asking.exception()
