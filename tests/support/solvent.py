"""The money of a scripted node: a session key that can pay, and no priority fees.

Owns: the balance that a test may change. Never: takes a fee. Next: audit_driver.py.
"""

from dataclasses import dataclass, field

from solders.pubkey import Pubkey

from troth_coordinator.chain.pricing import Pricing


@dataclass
class Solvent:
    """Answers for balances. `rpc`: there is nothing to compare."""

    rpc: None = None
    pricing: Pricing = field(default_factory=lambda: Pricing(None))  # type: ignore[arg-type]
    lamports: int = 10**9

    async def balance(self, _address: Pubkey) -> int:
        return self.lamports
