"""The cost of keeping an account: Solana's rent, which every account of ours is exempt from.

Owns: the two constants of the cluster and their product. Never: asks a node.
Source: `solana_program::rent`, default parameters: two years at 3,480 lamports a byte-year.
"""

from typing import Final

OVERHEAD_BYTES: Final = 128
LAMPORTS_PER_BYTE: Final = 6_960


def exempt_lamports(num_bytes: int) -> int:
    """Return the lamports that an account of `num_bytes` of data must hold."""
    return (OVERHEAD_BYTES + num_bytes) * LAMPORTS_PER_BYTE
