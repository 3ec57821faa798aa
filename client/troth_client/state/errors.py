"""Errors of this folder, as one tree.

Owns: the exception types. Never: a verdict; `troth_attestation` gives those.
Next: `residuals.py` and `openings_store.py`, which raise them.

    ClientError
    └── AuditError
        ├── ResidualLostError    u of a round is missing, damaged, or not the one that was signed
        ├── WeightsLostError     w_r of an audited round is missing, damaged or not canonical
        └── SeedNotFrozenError   tiles are drawn by the seed, and there is none yet
"""

from troth_client.errors import ClientError


class AuditError(ClientError):
    """Base of all errors of `troth_client.audit`."""


class ResidualLostError(AuditError):
    """A residual that should be opened is not there as it was signed."""


class WeightsLostError(AuditError):
    """The weights on which an audited round trained are not there as the chain names them."""


class SeedNotFrozenError(AuditError):
    """Nothing of a round may be opened before its seed is frozen on chain."""
