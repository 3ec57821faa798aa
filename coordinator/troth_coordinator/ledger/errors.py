"""Errors of a ledger, as one tree.

Owns: the exception types. Never: a fault of a participant; the chain decides about those.
Next: `fold.py` and `file.py`, which raise them.

    LedgerError
    ├── LedgerOrderError   an event is missing, comes twice, or stands at another place
    ├── LedgerHashError    the events are not those that the chain absorbed
    └── LedgerFileError    a file is no ledger, is damaged, or is that of another run
"""

from troth_coordinator.errors import SubjectError


class LedgerError(SubjectError):
    """Base of all errors of `troth_coordinator.ledger`."""


class LedgerOrderError(LedgerError):
    """An event is missing, comes twice, or stands at another place."""


class LedgerHashError(LedgerError):
    """The events are not those that the chain absorbed."""


class LedgerFileError(LedgerError):
    """A file is no ledger, is damaged, or is that of another run."""
