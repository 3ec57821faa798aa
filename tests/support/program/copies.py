"""Copies of drivers: a state that is dear to reach is played once, and each test gets its own.

Owns: what a copy must not share with its original: accounts, blocks, history, books and keys.
Never: copies a chain of another kind than `Chain`, or one that somebody observes.
Next: audits.py and cases.py, whose `started` returns such copies.
"""

import copy
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TypeVar

from support.program.chain import ChainDriver
from troth_localnet.blocks import BlockLedger
from troth_localnet.history import History
from troth_localnet.svm import Chain

Driver = TypeVar("Driver", bound=ChainDriver)
OWN = ("owners", "sessions", "roles", "costs", "_known")
"""Lists and dictionaries of a driver that a test may change."""


def copy_of(make: Callable[..., Driver], *arguments: int, **changes: int | str) -> Driver:
    """Return a copy of what `make` returns for these arguments; it is called once for each."""
    original: Driver = _original(make, arguments, tuple(sorted(changes.items())))
    return copied(original)


@cache
def _original(
    make: Callable[..., Driver],
    arguments: tuple[int, ...],
    changes: tuple[tuple[str, int | str], ...],
) -> Driver:
    return make(*arguments, **dict(changes))


def copied(driver: Driver) -> Driver:
    """A driver of a second chain, in the same state as the first and independent of it."""
    made = copy.copy(driver)
    made.chain = _chain(driver)
    made.ledger = driver.ledger.forked()
    for name in OWN:
        setattr(made, name, copy.copy(getattr(driver, name)))
    return made


def _chain(driver: ChainDriver) -> Chain:
    old, made = driver.chain, driver.new_chain()
    assert type(old) is type(made) is Chain, "only a plain chain can be copied"
    assert not old.observers, "whoever observes a chain would not see its copy"
    made.blocks = _blocks(old, made)
    made.history = _history(old.history)
    made.num_airdrops = old.num_airdrops
    for address in old.accounts._owner_of:
        account = old.accounts.get(address)
        if account is not None and not account.executable:
            made.accounts.set(address, account)
    made._write_sysvars()
    return made


def _blocks(old: Chain, made: Chain) -> BlockLedger:
    blocks = copy.copy(old.blocks)
    blocks._timestamp = made._timestamp
    blocks._slot_hashes = list(blocks._slot_hashes)
    blocks._last_valid_height = dict(blocks._last_valid_height)
    blocks._blocks = {
        slot: replace(block, signatures=list(block.signatures))
        for slot, block in blocks._blocks.items()
    }
    blocks.open = blocks._blocks[old.slot]
    return blocks


def _history(old: History) -> History:
    history = copy.copy(old)
    history._by_signature = dict(old._by_signature)
    history._by_address = defaultdict(old._by_address.default_factory)
    for address, signatures in old._by_address.items():
        history._by_address[address] = copy.copy(signatures)
    return history
