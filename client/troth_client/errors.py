"""The root of every error that a client raises on purpose.

Owns: the base class. Never: an error of a part; each folder draws its own branch in its `errors.py`
(`model`, `data`, `train`, `storage`, `compression`, `transport`, ...).
Next: the `errors.py` of each folder; `runtime/files.py` for errors of the file system;
`troth_coordinator.errors` for the shape of every message.
"""

from troth_coordinator.errors import TrothError


class ClientError(TrothError):
    """Something that a participant or its operator can act on."""
