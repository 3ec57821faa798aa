"""Account reads: getAccountInfo and its relatives.

Owns: these methods. Never: changes the chain. Next: `../account_json.py`, which writes the results.
"""

from __future__ import annotations

from typing import Final

from troth_localnet.account_json import account_json, keyed_account_json, passes
from troth_localnet.methods.context import Node, NodeMethod
from troth_localnet.methods.params import (
    AccountConfig,
    Config,
    Params,
    ProgramAccountsConfig,
    parse_pubkey,
)
from troth_localnet.values import Json

MAX_ACCOUNTS: Final = 100
_MAX_ACCOUNT_BYTES: Final = 10 * 1024 * 1024


def get_account_info(node: Node, params: Params) -> Json:
    """Return one account, null if there is none."""
    config = params.config(1, AccountConfig)
    node.check_context(config)
    account = node.chain.accounts.get(params.pubkey(0))
    return node.with_context(account_json(account, config))


def get_multiple_accounts(node: Node, params: Params) -> Json:
    """Return up to 100 accounts, in the order asked for, nulls included."""
    config = params.config(1, AccountConfig)
    node.check_context(config)
    addresses = [parse_pubkey(text) for text in params.texts(0, "pubkeys", MAX_ACCOUNTS)]
    found = [node.chain.accounts.get(address) for address in addresses]
    return node.with_context([account_json(account, config) for account in found])


def get_program_accounts(node: Node, params: Params) -> Json:
    """Return the accounts a program owns, by ascending address."""
    config = params.config(1, ProgramAccountsConfig)
    node.check_context(config)
    listed = [
        keyed_account_json(address, account, config)
        for address, account in node.chain.accounts.of_program(params.pubkey(0))
        if passes(account, config.filters or ())
    ]
    return node.with_context(listed) if config.with_context else listed


def get_balance(node: Node, params: Params) -> Json:
    """Return lamports, 0 for no account."""
    node.check_context(params.config(1, Config))
    return node.with_context(node.chain.accounts.balance(params.pubkey(0)))


def get_minimum_balance(node: Node, params: Params) -> Json:
    """Return the rent-exempt minimum of a data size."""
    return node.chain.minimum_balance(params.integer(0, "length", high=_MAX_ACCOUNT_BYTES))


METHODS: Final[dict[str, NodeMethod]] = {
    "getAccountInfo": get_account_info,
    "getBalance": get_balance,
    "getMinimumBalanceForRentExemption": get_minimum_balance,
    "getMultipleAccounts": get_multiple_accounts,
    "getProgramAccounts": get_program_accounts,
}
