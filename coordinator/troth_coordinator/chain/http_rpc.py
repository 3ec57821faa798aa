"""`HttpRpc`: the Rpc port over HTTP with solana-py. The one door for answers of foreign machines.

Owns: the time limit, and our error for each answer that is bad: a refused connection, garbage,
wrong types, a panic inside solders. Answers about transactions are read as JSON: solders refuses
each version, and each reason of a failure, that is newer than itself.
Never: retries (client.py does), caches or subscribes.
Next: http_provider.py for size and status of one answer; rpc.py for what the methods mean.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import aiohttp
from solders.account_decoder import UiAccountEncoding
from solders.commitment_config import CommitmentLevel
from solders.hash import Hash
from solders.pubkey import Pubkey
from solders.rpc.config import RpcAccountInfoConfig, RpcProgramAccountsConfig
from solders.rpc.filter import Memcmp
from solders.rpc.requests import GetMultipleAccounts, GetProgramAccounts
from solders.signature import Signature

from troth_coordinator.chain import base58
from troth_coordinator.chain.account_json import AccountsText
from troth_coordinator.chain.errors import (
    ChainError,
    MalformedReplyError,
    RpcAddressError,
    RpcRefusedError,
    RpcTimeoutError,
    RpcUnreachableError,
    UnreadableRecordError,
)
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.http_provider import CappedProvider, Client, Request, reason_of
from troth_coordinator.chain.newest_slot import NewestSlot
from troth_coordinator.chain.record_json import read_listed, read_record
from troth_coordinator.chain.rpc import (
    BEHIND_CODE,
    MAX_ACCOUNTS_PER_CALL,
    Account,
    BytesAt,
    Finality,
    Listed,
    Simulation,
    Status,
    TransactionRecord,
)
from troth_coordinator.chain.rpc_health import node_name

DEFAULT_TIMEOUT_SECONDS = 10.0
SLOT_SAMPLES = 5
"""Minutes over which a node averages the length of a slot."""
MAX_REPLY_BYTES = 16 << 20
"""Largest honest answer: all accounts of one run, about 2 MB."""

_SCHEMES = ("http://", "https://", "ws://", "wss://")
"""Those of a websocket are asked, too: then the error names the port of JSON-RPC beside it."""

PAGE_SIZE: Final = 250
"""Transactions that are listed at a time. A stranger's memos fill 24 kB of JSON for each: a page
of a thousand would be larger than MAX_REPLY_BYTES."""
VERSIONS: Final = (0, 127)
"""The newest version of transactions that is asked for: first one that every provider takes. The
second is the highest that there can be, for a transaction that a node does not show otherwise."""
UNSUPPORTED_VERSION, INVALID_PARAMS = -32_015, -32_602
"""Codes of an RPC node that does not show a transaction, or takes no request for such a version."""
_SEND: Final = {"encoding": "base64", "preflightCommitment": "confirmed"}
_SIMULATE: Final = {"encoding": "base64", "commitment": "confirmed", "sigVerify": True}
_LIST: Final = {"limit": PAGE_SIZE, "commitment": "confirmed"}
_RECORD: Final = {"encoding": "json", "commitment": "confirmed"}
_ACCOUNTS = RpcAccountInfoConfig(UiAccountEncoding.Base64Zstd, commitment=CommitmentLevel.Confirmed)

_T = TypeVar("_T")


def _not_http(url: str) -> RpcAddressError:
    """Return the error for an address; it repeats neither path nor password: keys stand there."""
    return RpcAddressError(
        "address of a Solana RPC",
        "one that begins with http:// or https://",
        node_name(url),
        "write it whole, like http://127.0.0.1:8899, or name a cluster: localhost, devnet,"
        " testnet or mainnet-beta",
    )


class HttpRpc:
    """A node behind an HTTP address; see `Rpc` for the methods. Use in one event loop, then close.

    timeout_seconds bounds a whole request, also one that drips byte by byte. max_reply_bytes
    bounds an answer; more is refused while reading. Environment proxies are not used. Errors call
    the node by `name`, its address by default: an address may hold a key. Raises RpcAddressError
    for an address of another scheme.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        name: str = "",
    ) -> None:
        if not url.lower().startswith(_SCHEMES):
            raise _not_http(url)
        self.url = url
        self.name = name or url
        self._timeout_seconds = timeout_seconds
        self._provider = CappedProvider(url, max_reply_bytes, self.name)
        self._client = Client(self._provider)
        self._newest = NewestSlot()

    async def __aenter__(self) -> HttpRpc:
        """Open for use in `async with`."""
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        """Close the connection."""
        await self.close()

    async def close(self) -> None:
        """Close the connection; the object is of no use afterwards."""
        await self._client.close()

    async def get_slot(self) -> int:
        """See Rpc.get_slot."""
        slot = await self._ask("getSlot", self._client.get_slot, lambda reply: int(reply.value))
        self._newest.saw(slot)
        return slot

    async def block_height(self) -> int:
        """See Rpc.block_height."""
        return await self._ask(
            "getBlockHeight", self._client.get_block_height, lambda reply: reply.value
        )

    async def get_accounts(self, addresses: Sequence[Pubkey]) -> tuple[int, list[Account | None]]:
        """See Rpc.get_accounts. Raises ChainError for more than 100 addresses."""
        keys = list(addresses)
        if len(keys) > MAX_ACCOUNTS_PER_CALL:
            raise ChainError(
                "addresses in one call",
                f"at most {MAX_ACCOUNTS_PER_CALL}",
                f"{len(keys)}",
                "split the call",
            )
        method = "getMultipleAccounts"
        body = GetMultipleAccounts(keys, _ACCOUNTS)
        slot, accounts = await self._ask(
            method,
            lambda: self._provider.make_request_unparsed(body),
            lambda text: AccountsText(text).at_slot(),
        )
        if len(accounts) != len(keys):
            raise MalformedReplyError(method, f"{len(accounts)} accounts for {len(keys)} keys")
        self._newest.saw(slot)
        return slot, accounts

    async def get_program_accounts(
        self, program: Pubkey, filters: Sequence[int | BytesAt]
    ) -> list[tuple[Pubkey, Account]]:
        """See Rpc.get_program_accounts."""
        chosen: list[int | Memcmp] = [
            entry if isinstance(entry, int) else Memcmp(entry.offset, base58.encode(entry.value))
            for entry in filters
        ]
        body = GetProgramAccounts(program, RpcProgramAccountsConfig(_ACCOUNTS, chosen))
        return await self._ask(
            "getProgramAccounts",
            lambda: self._provider.make_request_unparsed(body),
            lambda text: AccountsText(text).keyed(),
        )

    async def latest_blockhash(self) -> tuple[Hash, int]:
        """See Rpc.latest_blockhash."""
        return await self._ask(
            "getLatestBlockhash",
            self._client.get_latest_blockhash,
            lambda reply: (reply.value.blockhash, reply.value.last_valid_block_height),
        )

    async def send(self, raw: bytes, *, skip_preflight: bool = False) -> Signature:
        """See Rpc.send."""
        config = {**_SEND, "skipPreflight": skip_preflight}
        return await self._judge("sendTransaction", raw, config, Signature.from_string)

    async def simulate(self, raw: bytes) -> Simulation:
        """See Rpc.simulate."""
        return await self._judge(
            "simulateTransaction", raw, _SIMULATE, lambda result: _simulation(result["value"])
        )

    async def statuses(
        self, signatures: Sequence[Signature], *, search_history: bool = False
    ) -> list[Status | None]:
        """See Rpc.statuses. Raises MalformedReplyError for another number of answers."""
        keys = list(signatures)
        method = "getSignatureStatuses"
        found = await self._ask_json(
            method,
            [[str(key) for key in keys], {"searchTransactionHistory": search_history}],
            lambda result: [None if value is None else _status(value) for value in result["value"]],
        )
        if len(found) != len(keys):
            raise MalformedReplyError(method, f"{len(found)} statuses for {len(keys)} keys")
        for status in found:
            if status is not None and status.finality != "processed":
                self._newest.saw(status.slot)
        return found

    async def transaction(self, signature: Signature) -> TransactionRecord | None:
        """See Rpc.transaction.

        Raises UnreadableRecordError also for a version that the node cannot show in any form, with
        its refusals, and RpcRefusedError for another refusal.
        """
        method, refusals = "getTransaction", list[str]()
        for version in VERSIONS:
            config = {**_RECORD, "maxSupportedTransactionVersion": version}
            try:
                return await self._ask_json(method, [str(signature), config], read_record)
            except RpcRefusedError as error:
                if error.code != UNSUPPORTED_VERSION and not (
                    refusals and error.code == INVALID_PARAMS
                ):
                    raise
                refusals.append(f"error {error.code}: {error.text}")
        raise UnreadableRecordError(method, "; ".join(refusals))

    async def signatures(
        self, address: Pubkey, *, before: Signature | None = None, until: Signature | None = None
    ) -> list[Listed]:
        """See Rpc.signatures."""
        ends = {"before": before, "until": until}
        given = {name: str(signature) for name, signature in ends.items() if signature is not None}
        params = [str(address), {**_LIST, **given}]
        return await self._ask_json("getSignaturesForAddress", params, read_listed)

    async def recent_fees(self, accounts: Sequence[Pubkey]) -> list[int]:
        """See Rpc.recent_fees."""
        return await self._ask_json(
            "getRecentPrioritizationFees",
            [[str(account) for account in accounts]],
            lambda result: [_fee(one["prioritizationFee"]) for one in result],
        )

    async def slot_micros(self) -> int | None:
        """See Rpc.slot_micros."""
        return await self._ask(
            "getRecentPerformanceSamples",
            lambda: self._client.get_recent_performance_samples(SLOT_SAMPLES),
            lambda reply: _slot_micros(
                sum(one.sample_period_secs for one in reply.value),
                sum(one.num_slots for one in reply.value),
            ),
        )

    async def genesis_hash(self) -> bytes:
        """See Rpc.genesis_hash."""
        return await self._ask(
            "getGenesisHash", self._client.get_genesis_hash, lambda reply: bytes(reply.value)
        )

    async def version(self) -> str:
        """Return the version of the node's software; for people, so it is no part of the port."""
        return await self._ask(
            "getVersion", self._client.get_version, lambda reply: str(reply.value.solana_core)
        )

    async def request_airdrop(self, address: Pubkey, lamports: int) -> Signature:
        """See Rpc.request_airdrop."""
        return await self._ask(
            "requestAirdrop",
            lambda: self._client.request_airdrop(address, lamports),
            lambda reply: reply.value,
        )

    async def _judge(
        self, method: str, raw: bytes, config: Mapping[str, object], convert: Callable[[Any], _T]
    ) -> _T:
        """One request about a transaction, to be judged at no slot before one that was seen.

        Of several nodes behind one address one lags: it would refuse what follows from the newest.
        """
        params = [base64.b64encode(raw).decode(), {**config, **self._newest.config}]
        is_behind = False
        try:
            return await self._ask_json(method, params, convert)
        except RpcRefusedError as error:
            is_behind = error.code == BEHIND_CODE
            raise
        finally:
            self._newest.told(is_behind=is_behind)

    async def _ask_json(
        self, method: str, params: Sequence[object], convert: Callable[[Any], _T]
    ) -> _T:
        """One request whose result is read from its JSON; errors as in `_ask`."""
        asked = Request(method, params)
        return await self._ask(
            method,
            lambda: self._provider.make_request_unparsed(asked),
            lambda text: convert(json.loads(text)["result"]),
        )

    async def _ask(
        self,
        method: str,
        request: Callable[[], Awaitable[object]],
        convert: Callable[..., _T],
    ) -> _T:
        """One request, with every failure turned into one of our errors.

        The conversion runs inside the guard: solders decodes lazily and may panic there. A panic
        of pyo3 derives from BaseException, so it is recognised by its module and nothing else is.
        """
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return convert(await request())
        except ChainError:
            raise
        except TimeoutError as error:
            raise RpcTimeoutError(
                self.name, f"no complete answer to {method} in {self._timeout_seconds:g} s"
            ) from error
        except aiohttp.ClientError as error:
            raise RpcUnreachableError(self.name, f"{reason_of(error)} during {method}") from error
        except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
            raise
        except Exception as error:
            # Any error of a parser that reads bytes from a stranger: SerdeJSONError, KeyError, ...
            raise MalformedReplyError(method, f"{type(error).__name__}: {error}"[:300]) from error
        except BaseException as error:
            if type(error).__module__ != "pyo3_runtime":
                raise
            raise MalformedReplyError(method, f"a panic in the parser: {error}"[:300]) from error


def _fee(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**64:
        raise TypeError(f"expected a price of 64 bits, found {value!r:.80}")
    return value


def _slot_micros(seconds: int, num_slots: int) -> int | None:
    return max(1, seconds * 10**6 // num_slots) if seconds and num_slots else None


def _simulation(value: Mapping[str, object]) -> Simulation:
    logs = value.get("logs") or ()
    if not isinstance(logs, Sequence) or isinstance(logs, str):
        raise MalformedReplyError("simulateTransaction", repr(value)[:200])
    failure = TransactionFailure.from_json(value["err"])
    return Simulation(failure, tuple(str(line) for line in logs))


def _status(value: Mapping[str, object]) -> Status:
    slot, finality = value["slot"], value.get("confirmationStatus")
    levels: dict[object, Finality] = {
        "processed": "processed",
        "confirmed": "confirmed",
        "finalized": "finalized",
        # Nodes that predate the field report rooted transactions by confirmations = null.
        None: "finalized" if value.get("confirmations") is None else "processed",
    }
    if type(slot) is not int or finality not in levels:
        raise MalformedReplyError("getSignatureStatuses", repr(value)[:200])
    return Status(slot, TransactionFailure.from_json(value.get("err")), levels[finality])
