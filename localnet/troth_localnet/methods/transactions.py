"""Sending, simulating and looking up transactions, and the faucet.

Owns: these methods. Never: executes by itself; the Chain does.
Next: `../transaction_json.py` for the results, `../failure_text.py` for the words of refusals.
"""

from __future__ import annotations

import base64
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from troth_coordinator.chain import base58
from troth_localnet.account_json import account_json
from troth_localnet.blocks import MAX_BLOCKHASH_AGE_BLOCKS
from troth_localnet.errors import (
    AirdropRefusedError,
    InvalidTransactionError,
    RefusedTransactionError,
)
from troth_localnet.execution import Outcome
from troth_localnet.failure_text import failure_text
from troth_localnet.history import LandedTransaction
from troth_localnet.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    PREFLIGHT_FAILURE,
    JsonRpcError,
)
from troth_localnet.message import MAX_TRANSACTION_BYTES, TableLookupError, decode_transaction
from troth_localnet.methods.context import Node, NodeMethod
from troth_localnet.methods.params import (
    U64,
    AccountConfig,
    Commitment,
    Config,
    HistoryConfig,
    Params,
    TransactionEncoding,
    parse_pubkey,
    parse_signature,
    refusal,
)
from troth_localnet.transaction_json import (
    inner_calls_json,
    return_data_json,
    status_json,
    transaction_json,
)
from troth_localnet.values import Json

MAX_SIGNATURES: Final = 256
MAX_LISTED: Final = 1_000


class SendConfig(Config):
    """How to send. maxRetries is accepted and means nothing: a sent transaction executes."""

    encoding: str = "base58"
    skip_preflight: bool = False
    preflight_commitment: Commitment | None = None
    max_retries: U64 | None = None


class SimulatedAccounts(BaseModel):
    """The accounts to return, in their state after the transaction."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")
    addresses: Annotated[list[str], Field(max_length=100)]
    encoding: str | None = None


class SimulateConfig(Config):
    """How to simulate."""

    encoding: str = "base58"
    sig_verify: bool = False
    replace_recent_blockhash: bool = False
    inner_instructions: bool = False
    accounts: SimulatedAccounts | None = None


class StatusConfig(Config):
    """Whether to look further back than the last 150 blocks."""

    search_transaction_history: bool = False


class AddressHistoryConfig(HistoryConfig):
    """The part of an address's history to list."""

    limit: Annotated[int, Field(ge=1, le=MAX_LISTED)] = MAX_LISTED
    before: str | None = None
    until: str | None = None


class TransactionConfig(HistoryConfig):
    """How to write a transaction."""

    encoding: TransactionEncoding = "json"
    max_supported_transaction_version: Annotated[int, Field(ge=0, le=255)] | None = None


def send_transaction(node: Node, params: Params) -> Json:
    """Execute a transaction and return its signature; -32002 if preflight refuses it."""
    config = params.config(1, SendConfig)
    node.check_context(config)
    raw = _raw_transaction(params, config.encoding)
    try:
        return str(node.chain.send(raw, skip_preflight=config.skip_preflight))
    except InvalidTransactionError as error:
        raise refusal(str(error)) from error
    except RefusedTransactionError as error:
        raise _preflight_error(error.outcome) from error


def simulate_transaction(node: Node, params: Params) -> Json:
    """Return the result that a transaction would have."""
    config = params.config(1, SimulateConfig)
    node.check_context(config)
    if config.sig_verify and config.replace_recent_blockhash:
        raise refusal("sigVerify may not be used with replaceRecentBlockhash")
    try:
        transaction = decode_transaction(_raw_transaction(params, config.encoding))
    except InvalidTransactionError as error:
        raise refusal(str(error)) from error
    outcome = node.chain.simulate(
        transaction,
        check_signatures=config.sig_verify,
        check_blockhash=not config.replace_recent_blockhash,
    )
    value = _simulation_json(outcome)
    value["accounts"] = _simulated_accounts_json(node, outcome, config.accounts)
    if config.inner_instructions:
        value["innerInstructions"] = _simulated_calls_json(node, transaction, outcome)
    if config.replace_recent_blockhash:
        blockhash, last_valid = node.chain.latest_blockhash()
        value["replacementBlockhash"] = {
            "blockhash": str(blockhash),
            "lastValidBlockHeight": last_valid,
        }
    return node.with_context(value)


def request_airdrop(node: Node, params: Params) -> Json:
    """Pay lamports from the faucet and return the signature of the transfer."""
    address, lamports = params.pubkey(0), params.integer(1, "lamports", low=1)
    params.config(2, Config)
    try:
        return str(node.chain.airdrop(address, lamports))
    except AirdropRefusedError as error:
        raise JsonRpcError(INTERNAL_ERROR, f"Airdrop refused: {error}") from error


def get_signature_statuses(node: Node, params: Params) -> Json:
    """Return each signature's status, null where none is known."""
    signatures = [parse_signature(t) for t in params.texts(0, "signatures", MAX_SIGNATURES)]
    config = params.config(1, StatusConfig)
    oldest = node.chain.height - MAX_BLOCKHASH_AGE_BLOCKS
    statuses: list[Json] = []
    for signature in signatures:
        landed = node.chain.history.get(signature)
        is_listed = landed is not None and (
            config.search_transaction_history or landed.height >= oldest
        )
        statuses.append(_status_json(landed) if landed is not None and is_listed else None)
    return node.with_context(statuses)


def get_signatures_for_address(node: Node, params: Params) -> Json:
    """List the transactions that name an address, newest first."""
    address = params.pubkey(0)
    config = params.config(1, AddressHistoryConfig)
    node.check_context(config)
    before = None if config.before is None else parse_signature(config.before)
    until = None if config.until is None else parse_signature(config.until)
    listed: list[Json] = []
    is_past_before = before is None
    for landed in node.chain.history.newest_first(address):
        if landed.signature == until or len(listed) == config.limit:
            break
        if is_past_before:
            listed.append(_listing_json(landed))
        is_past_before = is_past_before or landed.signature == before
    return listed


def get_transaction(node: Node, params: Params) -> Json:
    """Return a landed transaction, null if unknown."""
    landed = node.chain.history.get(params.signature(0))
    value = params.get(1)
    config = params.config(1, TransactionConfig) if not isinstance(value, str) else None
    if config is None:
        # The old form: the encoding alone in place of a config.
        config = Params([{"encoding": value}]).config(0, TransactionConfig)
    if landed is None:
        return None
    return {
        "slot": landed.slot,
        "blockTime": landed.unix_timestamp,
        **transaction_json(landed, config.encoding, config.max_supported_transaction_version),
    }


def _raw_transaction(params: Params, encoding: str) -> bytes:
    text = params.text(0, "transaction")
    if len(text) > 2 * MAX_TRANSACTION_BYTES:
        raise refusal(
            f"transaction too large: {len(text)} characters (max: {MAX_TRANSACTION_BYTES} bytes)"
        )
    try:
        if encoding == "base64":
            return base64.b64decode(text, validate=True)
        if encoding in ("base58", "binary"):
            return base58.decode(text)
    except ValueError as error:
        raise refusal(f"transaction is not {encoding}: {error}") from error
    raise refusal(f"unsupported encoding: {encoding[:64]}. Supported encodings: base58, base64")


def _preflight_error(outcome: Outcome) -> JsonRpcError:
    return JsonRpcError(
        PREFLIGHT_FAILURE,
        f"Transaction simulation failed: {failure_text(outcome.error)}",
        _simulation_json(outcome),
    )


def _simulation_json(outcome: Outcome) -> dict[str, Json]:
    return {
        "err": outcome.error,
        "logs": outcome.logs,
        "accounts": None,
        "unitsConsumed": outcome.compute_units,
        "returnData": return_data_json(outcome),
        "innerInstructions": None,
        "replacementBlockhash": None,
    }


def _simulated_accounts_json(
    node: Node, outcome: Outcome, wanted: SimulatedAccounts | None
) -> Json:
    if wanted is None:
        return None
    if wanted.encoding not in (None, "base64", "jsonParsed"):
        raise JsonRpcError(INVALID_PARAMS, "Invalid params: base58 encoding not supported here")
    addresses = [parse_pubkey(text) for text in wanted.addresses]
    if outcome.error is not None:
        return [None] * len(addresses)
    return [_after_json(node, outcome, address) for address in addresses]


def _after_json(node: Node, outcome: Outcome, address: Pubkey) -> Json:
    account = outcome.post_accounts.get(address) or node.chain.accounts.get(address)
    is_gone = account is not None and account.lamports == 0
    return account_json(None if is_gone else account, AccountConfig())


def _simulated_calls_json(node: Node, transaction: VersionedTransaction, outcome: Outcome) -> Json:
    try:
        keys = node.chain.resolve(transaction)
    except TableLookupError:
        return []
    return inner_calls_json(outcome, keys, parsed=False)


def _status_json(landed: LandedTransaction) -> Json:
    return {
        "slot": landed.slot,
        "confirmations": None,
        "err": landed.outcome.error,
        "status": status_json(landed.outcome.error),
        "confirmationStatus": "finalized",
    }


def _listing_json(landed: LandedTransaction) -> Json:
    return {
        "signature": str(landed.signature),
        "slot": landed.slot,
        "err": landed.outcome.error,
        "memo": None,
        "blockTime": landed.unix_timestamp,
        "confirmationStatus": "finalized",
    }


METHODS: Final[dict[str, NodeMethod]] = {
    "getSignatureStatuses": get_signature_statuses,
    "getSignaturesForAddress": get_signatures_for_address,
    "getTransaction": get_transaction,
    "requestAirdrop": request_airdrop,
    "sendTransaction": send_transaction,
    "simulateTransaction": simulate_transaction,
}
