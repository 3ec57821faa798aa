"""Errors that end a profile, as one tree.

    ProfileError
    ├── ShapingError          this machine or this user cannot make shaped networks
    ├── CountingError         this system does not tell how many bytes went by
    ├── RankEndedError        the process of a rank ended before its work did
    └── WeightsDifferError    ranks that must hold the same weights do not

Owns: the classes. Next: `cell.py` and `study.py` raise them.
"""

from troth_client.errors import ClientError


class ProfileError(ClientError):
    """A profile could not be carried through; nothing was estimated in its place."""


class ShapingError(ProfileError):
    """Network namespaces, bridges or token buckets cannot be made here."""


class CountingError(ProfileError):
    """The system does not tell how many bytes went by."""


class RankEndedError(ProfileError):
    """The process of a rank ended before its work did; the message names the rank."""


class WeightsDifferError(ProfileError):
    """After the same steps, ranks of one method hold other weights."""
