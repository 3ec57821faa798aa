"""SPL token reads, enough for wallets and tools; troth itself moves lamports only.

Owns: token account and mint layouts (both token programs share them).
Never: changes the chain. Next: `registry.py`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from solders.account import Account
from solders.pubkey import Pubkey

from troth_localnet.account_json import keyed_account_json
from troth_localnet.methods.context import Node, NodeMethod
from troth_localnet.methods.params import (
    AccountConfig,
    Config,
    Params,
    parse_config,
    parse_pubkey,
    refusal,
)
from troth_localnet.values import Json

TOKEN_PROGRAMS: Final = tuple(
    Pubkey.from_string(text)
    for text in (
        "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
        "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
    )
)
_TOKEN_ACCOUNT_BYTES: Final = 165
_MINT_BYTES: Final = 82


class TokenFilter(Config):
    """Which token accounts: of one mint, or of one token program."""

    mint: str | None = None
    program_id: str | None = None


def get_token_account_balance(node: Node, params: Params) -> Json:
    """Return the balance of a token account."""
    account = _token_account(node, params.pubkey(0), _TOKEN_ACCOUNT_BYTES, "token account")
    amount = int.from_bytes(account.data[64:72], "little")
    return node.with_context(_amount_json(amount, _decimals(node, _mint_of(account))))


def get_token_supply(node: Node, params: Params) -> Json:
    """Return the supply of a mint."""
    address = params.pubkey(0)
    mint = _token_account(node, address, _MINT_BYTES, "mint")
    supply = int.from_bytes(mint.data[36:44], "little")
    return node.with_context(_amount_json(supply, _decimals(node, address)))


def get_token_accounts_by_owner(node: Node, params: Params) -> Json:
    """Return the token accounts of a wallet."""
    owner = params.pubkey(0, "owner")
    wanted = parse_config(params.get(1), TokenFilter)
    config = params.config(2, AccountConfig)
    if (wanted.mint is None) == (wanted.program_id is None):
        raise refusal("expected either mint or programId")
    mint = None if wanted.mint is None else parse_pubkey(wanted.mint)
    programs = TOKEN_PROGRAMS if wanted.program_id is None else (parse_pubkey(wanted.program_id),)
    return node.with_context(
        [
            keyed_account_json(address, account, config)
            for program in programs
            if program in TOKEN_PROGRAMS
            for address, account in node.chain.accounts.of_program(program)
            if _is_owned(account, owner, mint)
        ]
    )


def _is_owned(account: Account, owner: Pubkey, mint: Pubkey | None) -> bool:
    if len(account.data) < _TOKEN_ACCOUNT_BYTES or account.data[32:64] != bytes(owner):
        return False
    return mint is None or _mint_of(account) == mint


def _mint_of(account: Account) -> Pubkey:
    return Pubkey.from_bytes(account.data[:32])


def _decimals(node: Node, mint: Pubkey) -> int:
    return _token_account(node, mint, _MINT_BYTES, "mint").data[44]


def _token_account(node: Node, address: Pubkey, num_bytes: int, what: str) -> Account:
    account = node.chain.accounts.get(address)
    if account is None:
        raise refusal(f"could not find account {address}")
    if account.owner not in TOKEN_PROGRAMS or len(account.data) < num_bytes:
        raise refusal(f"{address} is not a {what}")
    return account


def _amount_json(amount: int, decimals: int) -> Json:
    value = Decimal(amount).scaleb(-decimals)
    text = f"{value:f}"
    return {
        "amount": str(amount),
        "decimals": decimals,
        "uiAmount": float(value),
        "uiAmountString": text.rstrip("0").rstrip(".") if "." in text else text,
    }


METHODS: Final[dict[str, NodeMethod]] = {
    "getTokenAccountBalance": get_token_account_balance,
    "getTokenAccountsByOwner": get_token_accounts_by_owner,
    "getTokenSupply": get_token_supply,
}
