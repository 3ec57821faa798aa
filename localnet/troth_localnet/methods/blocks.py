"""Slots, heights, blockhashes, blocks and fees.

Owns: these methods. Never: moves time. Next: `control.py`, which can.

The open block is served like any other, since every commitment level sees the same state here.
"""

from __future__ import annotations

import base64
from typing import Annotated, Final, Literal

from pydantic import Field
from solders.message import Message, MessageV0, from_bytes_versioned

from troth_localnet.blocks import SLOTS_PER_EPOCH, Block
from troth_localnet.congestion import recent_prices
from troth_localnet.fees import priority_fee, signature_fee
from troth_localnet.history import LandedTransaction
from troth_localnet.jsonrpc import BLOCK_NOT_AVAILABLE, SLOT_SKIPPED, JsonRpcError
from troth_localnet.message import MAX_TRANSACTION_BYTES
from troth_localnet.methods.context import Node, NodeMethod
from troth_localnet.methods.params import (
    Config,
    HistoryConfig,
    Params,
    TransactionEncoding,
    parse_pubkey,
    refusal,
)
from troth_localnet.transaction_json import (
    account_keys_json,
    short_meta_json,
    transaction_json,
    version_json,
)
from troth_localnet.values import Json

MAX_BLOCKS_LISTED: Final = 500_000
_MAX_FEE_ADDRESSES: Final = 128
_BLOCK_CLEANED_UP: Final = -32_001


class BlockConfig(HistoryConfig):
    """How to write a block."""

    encoding: TransactionEncoding = "json"
    transaction_details: Literal["full", "accounts", "signatures", "none"] = "full"
    rewards: bool | None = None
    max_supported_transaction_version: Annotated[int, Field(ge=0, le=255)] | None = None


def get_slot(node: Node, params: Params) -> Json:
    """Return the open slot."""
    node.check_context(params.config(0, Config))
    return node.chain.slot


def get_block_height(node: Node, params: Params) -> Json:
    """Return the height of the open block."""
    node.check_context(params.config(0, Config))
    return node.chain.height


def get_latest_blockhash(node: Node, params: Params) -> Json:
    """Return the newest blockhash and how long it lasts."""
    node.check_context(params.config(0, Config))
    blockhash, last_valid = node.chain.latest_blockhash()
    return node.with_context({"blockhash": str(blockhash), "lastValidBlockHeight": last_valid})


def is_blockhash_valid(node: Node, params: Params) -> Json:
    """Return whether a transaction may still name the blockhash."""
    node.check_context(params.config(1, Config))
    last_valid = node.chain.blocks.last_valid_height(params.blockhash(0))
    return node.with_context(last_valid is not None and node.chain.height <= last_valid)


def get_epoch_info(node: Node, params: Params) -> Json:
    """Return the place of the open slot in its epoch."""
    node.check_context(params.config(0, Config))
    slot = node.chain.slot
    return {
        "absoluteSlot": slot,
        "blockHeight": node.chain.height,
        "epoch": slot // SLOTS_PER_EPOCH,
        "slotIndex": slot % SLOTS_PER_EPOCH,
        "slotsInEpoch": SLOTS_PER_EPOCH,
        "transactionCount": node.chain.history.num_landed,
    }


def get_epoch_schedule(_node: Node, _params: Params) -> Json:
    """Return the epoch lengths: all equal."""
    return {
        "slotsPerEpoch": SLOTS_PER_EPOCH,
        "leaderScheduleSlotOffset": SLOTS_PER_EPOCH,
        "warmup": False,
        "firstNormalEpoch": 0,
        "firstNormalSlot": 0,
    }


def get_block_time(node: Node, params: Params) -> Json:
    """Return the unix time of a block."""
    return _block(node, params.integer(0, "slot")).unix_timestamp


def get_blocks(node: Node, params: Params) -> Json:
    """List the slots with a block from start to end, both inclusive."""
    start = params.integer(0, "start_slot")
    end = params.get(1)
    last = (
        node.chain.slot if end is None or isinstance(end, dict) else params.integer(1, "end_slot")
    )
    if last - start > MAX_BLOCKS_LISTED:
        raise refusal(f"Slot range too large; max {MAX_BLOCKS_LISTED}")
    return list(node.chain.blocks.slots(start, last))


def get_blocks_with_limit(node: Node, params: Params) -> Json:
    """List at most so many slots with a block from start on."""
    start, limit = params.integer(0, "start_slot"), params.integer(1, "limit", 0, MAX_BLOCKS_LISTED)
    return list(node.chain.blocks.slots(start, node.chain.slot))[:limit]


def get_block(node: Node, params: Params) -> Json:
    """Return one block with its transactions."""
    block = _block(node, params.integer(0, "slot"))
    config = params.config(1, BlockConfig)
    previous = block.previous_blockhash
    written: dict[str, Json] = {
        "blockhash": str(block.blockhash),
        "previousBlockhash": str(previous),
        "parentSlot": block.parent,
        "blockHeight": block.height,
        "blockTime": block.unix_timestamp,
    }
    if config.rewards is not False:
        written["rewards"] = []
    if config.transaction_details == "signatures":
        written["signatures"] = [str(signature) for signature in block.signatures]
    elif config.transaction_details != "none":
        written["transactions"] = [
            _block_transaction_json(landed, config) for landed in _landed_in(node, block)
        ]
    return written


def get_first_available_block(node: Node, _params: Params) -> Json:
    """Return the oldest slot whose block is kept."""
    return node.chain.blocks.first_kept_slot


def get_transaction_count(node: Node, params: Params) -> Json:
    """Return how many transactions have landed."""
    node.check_context(params.config(0, Config))
    return node.chain.history.num_landed


def get_fee_for_message(node: Node, params: Params) -> Json:
    """Return a message's fee in lamports; null once its blockhash has expired."""
    text = params.text(0, "message")
    node.check_context(params.config(1, Config))
    message = _message(text)
    if node.chain.blocks.last_valid_height(message.recent_blockhash) is None:
        return node.with_context(None)
    return node.with_context(signature_fee(message) + priority_fee(message))


def get_recent_prioritization_fees(node: Node, params: Params) -> Json:
    """Return, per recent block, the least unit price paid to write the given accounts."""
    texts = [] if params.get(0) is None else params.texts(0, "addresses", _MAX_FEE_ADDRESSES)
    addresses = {parse_pubkey(text) for text in texts}
    return [
        {"slot": slot, "prioritizationFee": price}
        for slot, price in recent_prices(node.chain, addresses)
    ]


def _landed_in(node: Node, block: Block) -> list[LandedTransaction]:
    found = (node.chain.history.get(signature) for signature in block.signatures)
    return [landed for landed in found if landed is not None]


def _block_transaction_json(landed: LandedTransaction, config: BlockConfig) -> Json:
    max_version = config.max_supported_transaction_version
    if config.transaction_details == "full":
        return transaction_json(landed, config.encoding, max_version)
    written: dict[str, Json] = {
        "transaction": {
            "signatures": [str(signature) for signature in landed.transaction.signatures],
            "accountKeys": account_keys_json(landed.keys),
        },
        "meta": short_meta_json(landed),
    }
    version = version_json(landed.transaction, max_version)
    if max_version is not None:
        written["version"] = version
    return written


def _block(node: Node, slot: int) -> Block:
    blocks = node.chain.blocks
    block = blocks.block(slot)
    if block is not None:
        return block
    if slot > node.chain.slot:
        raise JsonRpcError(BLOCK_NOT_AVAILABLE, f"Block not available for slot {slot}")
    first = blocks.first_kept_slot
    if slot < first:
        found = f"Block {slot} cleaned up, does not exist on node. First available block: {first}"
        raise JsonRpcError(_BLOCK_CLEANED_UP, found)
    raise JsonRpcError(
        SLOT_SKIPPED, f"Slot {slot} was skipped, or missing due to ledger jump to recent snapshot"
    )


def _message(text: str) -> Message | MessageV0:
    if len(text) > 2 * MAX_TRANSACTION_BYTES:
        raise refusal(f"message too large: {len(text)} characters")
    try:
        message = from_bytes_versioned(base64.b64decode(text, validate=True))
        num_keys = len(message.account_keys)
    except ValueError as error:
        raise refusal(f"message does not decode: {error}") from error
    if any(call.program_id_index >= num_keys for call in message.instructions):
        raise refusal("message names a program that is not among its keys")
    return message


METHODS: Final[dict[str, NodeMethod]] = {
    "getBlock": get_block,
    "getBlockHeight": get_block_height,
    "getBlockTime": get_block_time,
    "getBlocks": get_blocks,
    "getBlocksWithLimit": get_blocks_with_limit,
    "getEpochInfo": get_epoch_info,
    "getEpochSchedule": get_epoch_schedule,
    "getFeeForMessage": get_fee_for_message,
    "getFirstAvailableBlock": get_first_available_block,
    "getLatestBlockhash": get_latest_blockhash,
    "getRecentPrioritizationFees": get_recent_prioritization_fees,
    "getSlot": get_slot,
    "getTransactionCount": get_transaction_count,
    "isBlockhashValid": is_blockhash_valid,
    "minimumLedgerSlot": get_first_available_block,
}
