"""The real solana-test-validator behind the same interface, and the embedded chain beside it.

The binary is the one on PATH or the one that TROTH_VALIDATOR names; without it, these tests are
skipped.
"""

import base64
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from solders.compute_budget import set_compute_unit_price
from solders.hash import Hash
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.transaction import VersionedTransaction
from support.localnet import SOL, memo, pay, signed
from support.validator import validator_binary
from support.waiting import wait_for

from troth_coordinator.chain.errors import TransactionRejectedError
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_localnet.errors import (
    OptionError,
    PortInUseError,
    StartFailedError,
    ValidatorMissingError,
)
from troth_localnet.ports import bind_pair
from troth_localnet.validator import BINARY_NAME, ValidatorLauncher, ValidatorOptions

NOBODY = Keypair.from_seed(bytes([9]) * 32)


@pytest.fixture(scope="session")
def binary():
    return validator_binary()


@pytest.fixture(scope="module")
def validator(binary):
    with ValidatorLauncher(ValidatorOptions(binary=binary, slot_milliseconds=50)) as one:
        one.start({})
        yield one


@pytest.fixture(scope="module")
def embedded():
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=50)) as one:
        one.start({})
        yield one


async def confirmed(rpc, signature):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        (status,) = await rpc.statuses([signature])
        if status is not None and status.finality != "processed":
            return status
        time.sleep(0.02)
    raise AssertionError("not confirmed in time")


@pytest.mark.validator
@pytest.mark.parametrize("kind", ["validator", "embedded"])
async def test_five_transactions_through_our_rpc_port(request, kind):
    launcher = request.getfixturevalue(kind)
    key, to = Keypair(), Pubkey.new_unique()
    launcher.airdrop(key.pubkey(), 10 * SOL)
    rpc = HttpRpc(launcher.rpc_url)
    slots = []
    for number in range(5):
        blockhash, last_valid = await rpc.latest_blockhash()
        assert last_valid > await rpc.block_height()
        raw = bytes(
            signed([pay(key, to, SOL), memo(b"%d" % number, key.pubkey())], [key], blockhash)
        )
        signature = await rpc.send(raw)
        status = await confirmed(rpc, signature)
        assert status.failure is None
        record = await rpc.transaction(signature)
        assert record.slot == status.slot
        assert record.fee_lamports == 5_000
        assert record.compute_units > 1_000
        slots.append(record.slot)
    assert slots == sorted(slots)
    slot, (account, missing) = await rpc.get_accounts([to, Pubkey.new_unique()])
    assert account.lamports == 5 * SOL
    assert missing is None
    assert slot >= slots[-1]
    with pytest.raises(TransactionRejectedError) as caught:
        await rpc.send(bytes(signed([pay(key, to, 10**15)], [key], blockhash)))
    assert caught.value.failure == TransactionFailure("InstructionError", 0, "Custom", 1)


class Caller:
    """One launcher's node, with the same transactions prepared on each."""

    def __init__(self, launcher):
        self.url = launcher.rpc_url
        self.http = httpx.Client(trust_env=False, timeout=10)
        # The same keys on both: a program that logs a key spends units on its digits.
        self.key, self.to = Keypair.from_seed(bytes([8]) * 32), Pubkey.from_bytes(bytes([7]) * 32)
        launcher.airdrop(self.key.pubkey(), 100 * SOL)
        self.good = self.sign(
            set_compute_unit_price(1_000),
            pay(self.key, self.to, SOL),
            memo(b"hi", self.key.pubkey()),
        )
        self.landed = self.send(self.good)["result"]
        self.slot = self.wait_for(self.landed)

    def __call__(self, method, *params):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        return self.http.post(self.url, json=body).json()

    @property
    def blockhash(self):
        """The newest: on a loaded machine those of a minute ago are forgotten."""
        latest = self("getLatestBlockhash", CONFIRMED)["result"]["value"]
        return Hash.from_string(latest["blockhash"])

    def sign(self, *instructions, signer=None, blockhash=None):
        return signed(instructions, [signer or self.key], blockhash or self.blockhash)

    def send(self, transaction, **config):
        encoded = base64.b64encode(bytes(transaction)).decode()
        options = {"encoding": "base64", "preflightCommitment": "confirmed", **config}
        return self("sendTransaction", encoded, options)

    def simulate(self, transaction, **config):
        encoded = base64.b64encode(bytes(transaction)).decode()
        options = {"encoding": "base64", "commitment": "confirmed", **config}
        return self("simulateTransaction", encoded, options)

    def wait_for(self, signature):
        def confirmed():
            (status,) = self("getSignatureStatuses", [signature])["result"]["value"]
            return status and status["confirmationStatus"] != "processed" and status

        return wait_for(confirmed, 20)["slot"]


@pytest.fixture(scope="module")
def callers(validator, embedded):
    return Caller(validator), Caller(embedded)


CONFIRMED = {"commitment": "confirmed"}
BASE64 = {"encoding": "base64", **CONFIRMED}
V0 = {"maxSupportedTransactionVersion": 0, **CONFIRMED}
LOADER = "BPFLoader2111111111111111111111111111111111"

SAME_RESULTS = {
    "balance": lambda c: c("getBalance", str(c.to), CONFIRMED),
    "rent": lambda c: c("getMinimumBalanceForRentExemption", 1_000),
    "fee": lambda c: c(
        "getFeeForMessage", base64.b64encode(bytes(c.good.message)).decode(), CONFIRMED
    ),
    "account": lambda c: c("getAccountInfo", str(c.to), BASE64),
    "no account": lambda c: c("getAccountInfo", str(Pubkey.new_unique()), BASE64),
    "simulated units": lambda c: c.simulate(
        c.sign(pay(c.key, c.to, 7), memo(b"hi", c.key.pubkey()))
    )["result"]["value"]["unitsConsumed"],
    "landed": lambda c: {
        name: c("getTransaction", c.landed, {"encoding": "json", **V0})["result"]["meta"][name]
        for name in ("fee", "computeUnitsConsumed", "err", "status", "innerInstructions")
    },
}

SAME_SHAPES = {
    "slot": lambda c: c("getSlot"),
    "height": lambda c: c("getBlockHeight"),
    "blockhash": lambda c: c("getLatestBlockhash"),
    "epoch": lambda c: c("getEpochInfo"),
    "schedule": lambda c: c("getEpochSchedule"),
    "version": lambda c: c("getVersion"),
    "health": lambda c: c("getHealth"),
    "genesis": lambda c: c("getGenesisHash"),
    "identity": lambda c: c("getIdentity"),
    "prices": lambda c: c("getRecentPrioritizationFees"),
    "valid": lambda c: c("isBlockhashValid", str(c.blockhash), CONFIRMED),
    "statuses": lambda c: c("getSignatureStatuses", [c.landed, str(Signature.default())]),
    "listing": lambda c: c("getSignaturesForAddress", str(c.to), CONFIRMED),
    "parsed account": lambda c: c(
        "getAccountInfo", str(c.to), {"encoding": "jsonParsed", **CONFIRMED}
    ),
    "accounts": lambda c: c("getMultipleAccounts", [str(c.to), str(c.key.pubkey())], BASE64),
    "of program": lambda c: c("getProgramAccounts", LOADER, {**BASE64, "withContext": True}),
    "simulation": lambda c: c.simulate(c.good, replaceRecentBlockhash=True, innerInstructions=True),
    "failed simulation": lambda c: c.simulate(c.sign(pay(c.key, c.to, 10**15))),
    "block": lambda c: c("getBlock", c.slot, {"encoding": "json", **V0}),
    "block accounts": lambda c: c("getBlock", c.slot, {"transactionDetails": "accounts", **V0}),
    "block signatures": lambda c: c("getBlock", c.slot, {"transactionDetails": "signatures", **V0}),
    "bare block": lambda c: c(
        "getBlock", c.slot, {"transactionDetails": "none", "rewards": False, **V0}
    ),
    **{
        f"transaction {encoding} {config}": lambda c, e=encoding, k=config: c(
            "getTransaction", c.landed, {"encoding": e, **k}
        )
        for encoding in ("json", "base64", "base58")
        for config in (V0, CONFIRMED)
    },
}

SAME_REFUSALS = {
    "duplicate": lambda c: c.send(c.good),
    "too poor": lambda c: c.send(c.sign(pay(c.key, c.to, 10**15))),
    "rent": lambda c: c.send(c.sign(pay(c.key, Pubkey.new_unique(), 10))),
    "old blockhash": lambda c: c.send(c.sign(pay(c.key, c.to, 1), blockhash=Hash.default())),
    "unfunded": lambda c: c.send(c.sign(memo(b"", NOBODY.pubkey()), signer=NOBODY)),
    "forged": lambda c: c.send(
        VersionedTransaction.populate(c.good.message, [Signature.default()])
    ),
    "garbage": lambda c: c.send(b"\0" * 50),
    "too large": lambda c: c.send(b"\0" * 1_300),
    "not base58": lambda c: c("sendTransaction", "0OIl"),
    "unknown method": lambda c: c("nope"),
    "no address": lambda c: c("getBalance", "xyz"),
    "wrong type": lambda c: c("getBalance", 5),
    "missing parameter": lambda c: c("getBalance"),
    "too many keys": lambda c: c("getMultipleAccounts", [str(c.to)] * 101),
    "too many filters": lambda c: c(
        "getProgramAccounts", LOADER, {"filters": [{"dataSize": 1}] * 5}
    ),
    "bad filter": lambda c: c(
        "getProgramAccounts", LOADER, {"filters": [{"memcmp": {"offset": 0, "bytes": "0"}}]}
    ),
    "far slot": lambda c: c("getSlot", {"minContextSlot": 10**9}),
    "future block": lambda c: c("getBlock", 10**9),
    "below confirmed": lambda c: c("getTransaction", c.landed, {"commitment": "processed"}),
    "unknown encoding": lambda c: c("getAccountInfo", LOADER, {"encoding": "zip"}),
    "no token account": lambda c: c("getTokenAccountBalance", str(c.to), CONFIRMED),
}

NEWER_THAN_OUR_CLIENTS = {
    "clientId",
    "costUnits",
    "fee",
    "loadedAccountsDataSize",
    "loadedAddresses",
    "postBalances",
    "postTokenBalances",
    "preBalances",
    "preTokenBalances",
    "transactionIndex",
}
"""Keys of validator 4.1.1 that solders 0.26 does not know in the place where they are missing."""


def shape(value):
    """Keys and kinds of a reply; numbers, texts and list lengths do not matter."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in sorted(value.items())}
    if isinstance(value, list):
        return [shape(value[-1])] if value else []
    return "number" if isinstance(value, int | float) else type(value).__name__


def without_newer(theirs, ours):
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return {
            key: without_newer(part, ours.get(key))
            for key, part in theirs.items()
            if key in ours or key not in NEWER_THAN_OUR_CLIENTS
        }
    if isinstance(theirs, list) and isinstance(ours, list) and theirs and ours:
        return [without_newer(theirs[0], ours[0])]
    return theirs


def is_loosely_equal(theirs, ours):
    """A null stands for anything: finality and memos differ by design."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return theirs.keys() == ours.keys() and all(
            is_loosely_equal(part, ours[key]) for key, part in theirs.items()
        )
    if isinstance(theirs, list) and isinstance(ours, list):
        return not theirs or not ours or is_loosely_equal(theirs[0], ours[0])
    return theirs == ours or "NoneType" in (theirs, ours)


def without_context(reply):
    return json.loads(json.dumps(reply), object_hook=lambda o: {**o, "context": 0, "id": 0})


@pytest.mark.validator
@pytest.mark.parametrize("name", SAME_RESULTS)
def test_results_equal_the_validators(callers, name):
    theirs, ours = (without_context(SAME_RESULTS[name](caller)) for caller in callers)
    assert ours == theirs


@pytest.mark.validator
@pytest.mark.parametrize("name", SAME_SHAPES)
def test_reply_shapes_equal_the_validators(callers, name):
    theirs, ours = (shape(SAME_SHAPES[name](caller)) for caller in callers)
    assert is_loosely_equal(without_newer(theirs, ours), ours), f"{theirs}\n{ours}"


@pytest.mark.validator
@pytest.mark.parametrize("name", SAME_REFUSALS)
def test_refusals_equal_the_validators(callers, name):
    theirs, ours = (SAME_REFUSALS[name](caller) for caller in callers)
    assert ours["error"]["code"] == theirs["error"]["code"], (theirs, ours)
    if theirs["error"]["code"] == -32_002:
        assert ours["error"]["message"] == theirs["error"]["message"]
        assert ours["error"]["data"]["err"] == theirs["error"]["data"]["err"]
        assert ours["error"]["data"]["logs"] == theirs["error"]["data"]["logs"]


@pytest.mark.validator
def test_the_validator_does_not_outlive_a_killed_launcher(binary):
    script = (
        "import os, signal, sys; from pathlib import Path\n"
        "from troth_localnet.validator import ValidatorLauncher, ValidatorOptions\n"
        "one = ValidatorLauncher(ValidatorOptions(binary=Path(sys.argv[1]))); one.start({})\n"
        "print(one.rpc_url, one._folder.name, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(binary)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    url, folder = done.stdout.split()

    def is_gone():
        try:
            httpx.get(url + "/health", trust_env=False, timeout=2)
        except httpx.TransportError:
            return not Path(folder).exists()
        return False

    wait_for(is_gone, 15)


def test_a_missing_binary_is_named(tmp_path, monkeypatch):
    with pytest.raises(ValidatorMissingError, match="nowhere"):
        ValidatorLauncher(ValidatorOptions(binary=tmp_path / "nowhere")).start({})
    not_executable = tmp_path / BINARY_NAME
    not_executable.write_text("#!/bin/sh\n")
    with pytest.raises(ValidatorMissingError, match=str(tmp_path)):
        ValidatorLauncher(ValidatorOptions(binary=not_executable)).start({})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValidatorMissingError, match="on PATH"):
        ValidatorLauncher().start({})


def test_a_validator_that_dies_at_once_is_quoted(tmp_path):
    broken = tmp_path / BINARY_NAME
    broken.write_text("#!/bin/sh\necho the disk is on fire >&2\nexit 3\n")
    broken.chmod(0o755)
    one = ValidatorLauncher(ValidatorOptions(binary=broken))
    with pytest.raises(StartFailedError, match=r"ended with code 3.*disk is on fire"):
        one.start({})
    with pytest.raises(StartFailedError):
        _ = one.pid


def test_a_taken_port_is_named_before_anything_starts(tmp_path):
    binary = tmp_path / BINARY_NAME
    binary.write_text("#!/bin/sh\nexit 1\n")
    binary.chmod(0o755)
    first, second = bind_pair("127.0.0.1", 0)
    with first, second:
        port = first.getsockname()[1]
        with pytest.raises(PortInUseError, match=f"port {port}"):
            ValidatorLauncher(ValidatorOptions(binary=binary, port=port)).start({})


def test_validator_slots_have_a_sensible_length():
    with pytest.raises(OptionError, match="25 to 400"):
        ValidatorOptions(slot_milliseconds=5)
