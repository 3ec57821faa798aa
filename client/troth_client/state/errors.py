"""Errors of this folder, as one tree.

Owns: the exception types. Never: a verdict; `troth_attestation` gives those.
Next: `residual_archive.py`, `kept_weights.py` and `openings_store.py`, which raise them.

    ClientError
    └── AuditError
        ├── ResidualLostError    u of a round is missing, damaged, or not the one that was signed
        ├── WeightsLostError     w_r of an audited round is missing, damaged or not canonical
        └── SeedNotFrozenError   tiles are drawn by the seed, and there is none yet
"""

from troth_client.errors import ClientError


class AuditError(ClientError):
    """Base of the errors of state that an audit needs."""


class ResidualLostError(AuditError):
    """A residual that should be opened is missing, or differs from the signed one."""


class WeightsLostError(AuditError):
    """The weights of an audited round are missing, or differ from the root on chain."""


class SeedNotFrozenError(AuditError):
    """Nothing of a round may be opened before its seed is frozen on chain."""
