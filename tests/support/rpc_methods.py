"""Every method of the Rpc port over HTTP: how to call it, and an honest answer.

Owns: the answers. Never: serves them. Next: hostile_rpc.py, which does.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from solders.hash import Hash
from solders.message import Message
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import Transaction

from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.rpc import BytesAt

Ask = Callable[[HttpRpc], Awaitable[Any]]

KEY = Pubkey.from_bytes(bytes(range(32)))
SIGNATURE = Signature.from_bytes(bytes(range(64)))
TRANSACTION = bytes(Transaction.new_unsigned(Message.new_with_blockhash([], KEY, Hash.default())))
ACCOUNT = {
    "lamports": 7,
    "owner": str(KEY),
    "data": ["AQID", "base64"],
    "executable": False,
    "rentEpoch": 0,
    "space": 3,
}
STATUS = {
    "slot": 5,
    "confirmations": None,
    "err": None,
    "status": {"Ok": None},
    "confirmationStatus": "confirmed",
}
RECORD = {
    "slot": 5,
    "blockTime": 1,
    "version": "legacy",
    "transaction": {"signatures": [], "message": {"accountKeys": [str(KEY)]}},
    "meta": {
        "err": {"InstructionError": [1, {"Custom": 6003}]},
        "status": {"Err": {"InstructionError": [1, {"Custom": 6003}]}},
        "fee": 5000,
        "preBalances": [1],
        "postBalances": [1],
        "innerInstructions": [],
        "logMessages": ["Program log: x"],
        "preTokenBalances": [],
        "postTokenBalances": [],
        "rewards": [],
        "computeUnitsConsumed": 77,
    },
}
LISTED = {
    "signature": str(SIGNATURE),
    "slot": 5,
    "err": {"InstructionError": [1, "BorshIoError"]},
    "memo": None,
    "blockTime": 1,
    "confirmationStatus": "finalized",
}
CONTEXT = {"slot": 9, "apiVersion": "4.0.0"}

# Every method of the port: how to call it, and an honest answer.
METHODS: dict[str, tuple[Ask, Any]] = {
    "getSlot": (lambda rpc: rpc.get_slot(), 9),
    "getBlockHeight": (lambda rpc: rpc.block_height(), 8),
    "getMultipleAccounts": (
        lambda rpc: rpc.get_accounts([KEY, KEY]),
        {"context": CONTEXT, "value": [ACCOUNT, None]},
    ),
    "getProgramAccounts": (
        lambda rpc: rpc.get_program_accounts(KEY, [3, BytesAt(1, b"\0\2")]),
        [{"pubkey": str(KEY), "account": ACCOUNT}],
    ),
    "getLatestBlockhash": (
        lambda rpc: rpc.latest_blockhash(),
        {"context": CONTEXT, "value": {"blockhash": str(KEY), "lastValidBlockHeight": 159}},
    ),
    "sendTransaction": (lambda rpc: rpc.send(b"\1" + bytes(64)), str(SIGNATURE)),
    "simulateTransaction": (
        lambda rpc: rpc.simulate(TRANSACTION),
        {
            "context": CONTEXT,
            "value": {
                "err": {"InstructionError": [1, {"Custom": 6003}]},
                "logs": ["Program log: x"],
                "accounts": None,
                "unitsConsumed": 7,
                "returnData": None,
                "innerInstructions": None,
                "replacementBlockhash": None,
            },
        },
    ),
    "getVersion": (
        lambda rpc: rpc.version(),
        {"solana-core": "3.0.1", "feature-set": 1},
    ),
    "getSignatureStatuses": (
        lambda rpc: rpc.statuses([SIGNATURE, SIGNATURE]),
        {"context": CONTEXT, "value": [STATUS, None]},
    ),
    "getTransaction": (lambda rpc: rpc.transaction(SIGNATURE), RECORD),
    "getSignaturesForAddress": (lambda rpc: rpc.signatures(KEY), [LISTED, {**LISTED, "err": None}]),
    "getGenesisHash": (lambda rpc: rpc.genesis_hash(), str(KEY)),
    "requestAirdrop": (lambda rpc: rpc.request_airdrop(KEY, 5), str(SIGNATURE)),
}
