"""The cost of keeping an account: Solana's rent, which every account of ours is exempt from.

Owns: the two constants of the cluster and their product. Never: asks a node.
Source: `solana_program::rent`, default parameters: two years at 3,480 lamports a byte-year.
"""

import struct
from typing import Final

OVERHEAD_BYTES: Final = 128
LAMPORTS_PER_BYTE: Final = 6_960

SYSVAR: Final = "SysvarRent111111111111111111111111111111111"
"""The account in which a cluster says what it charges now: lamports, then years as a float."""
_SYSVAR_FIELDS = struct.Struct("<Qd")


def exempt_lamports(num_bytes: int, per_byte: int = LAMPORTS_PER_BYTE) -> int:
    """Return the lamports that an account of `num_bytes` of data must hold."""
    return (OVERHEAD_BYTES + num_bytes) * per_byte


def lamports_per_byte(sysvar: bytes) -> int:
    """Return what a cluster charges for a byte, from the data of its rent sysvar; ValueError."""
    if len(sysvar) < _SYSVAR_FIELDS.size:
        raise ValueError(f"a rent sysvar of {len(sysvar)} bytes")
    lamports, years = _SYSVAR_FIELDS.unpack_from(sysvar)
    return int(lamports * years)
