"""Addresses and transactions for people and for JSON.

Owns: the few texts that every view of the chain shares. Never: reads the chain.
Next: `run.py`, `status.py`.
"""

from solders.pubkey import Pubkey

from troth_cli.view.output import Json
from troth_coordinator.chain.client import ConfirmedTransaction


def key_text(key: bytes) -> str:
    """Return an address in base58."""
    return str(Pubkey.from_bytes(key))


def transaction_values(sent: ConfirmedTransaction) -> dict[str, Json]:
    """Return signature, slot, fee and compute units of one transaction, ready for JSON."""
    return {
        "signature": str(sent.signature),
        "slot": sent.slot,
        "fee_lamports": sent.fee_lamports,
        "compute_units": sent.compute_units,
    }
