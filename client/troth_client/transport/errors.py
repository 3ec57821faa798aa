"""Errors of moving bytes, as one tree.

Owns: the exception types of this folder. Never: a fault that the protocol punishes: a holder that
lies costs a retry, no more.
Next: `exchange.py`, which turns all holders' failures into one FetchError.

    ClientError
    └── TransportError
        ├── EndpointError           an address that cannot be served or called
        │   └── EndpointInUseError  the port is taken
        ├── NotReleasedError        bytes of a round whose Commit phase has not ended on chain
        ├── BlobRefusedError        bytes that nobody expects, of the wrong size or content
        ├── FetchError              no holder had it; `.failures` says why, holder by holder
        └── HolderError             one holder failed
            ├── HolderChangedError      somebody else has replaced what we would replace
            ├── HolderLacksError        it does not have it (yet)
            ├── HolderUnreachableError  no connection
            ├── HolderRefusedError      it does not take a push: not expected, or too busy
            │   └── HolderClosedError       it takes nothing from us, now or later
            ├── HolderSilentError       it stalled or was too slow
            ├── HolderTruncatedError    it stopped early; what came is kept for the next one
            └── HolderLiedError         wrong size, wrong bytes, or not HTTP as agreed
"""

from troth_client.errors import ClientError


class TransportError(ClientError):
    """Base of all errors of `troth_client.transport`."""


class EndpointError(TransportError):
    """An endpoint is not one."""


class EndpointInUseError(EndpointError):
    """Another process listens there already."""


class NotReleasedError(TransportError):
    """The bytes may not leave this machine yet."""


class BlobRefusedError(TransportError):
    """Offered bytes were not taken."""


class HolderError(TransportError):
    """A holder did not deliver; another one may."""


class HolderLacksError(HolderError):
    """The holder does not serve this address."""


class HolderChangedError(HolderError):
    """The object to replace is another one than we know."""


class HolderUnreachableError(HolderError):
    """No connection to the holder."""


class HolderRefusedError(HolderError):
    """The holder did not take what was pushed."""


class HolderClosedError(HolderRefusedError):
    """The holder takes no pushes from us."""


class HolderSilentError(HolderError):
    """The holder sent nothing, or too little, for too long."""


class HolderTruncatedError(HolderError):
    """The holder ended before the last byte."""


class HolderLiedError(HolderError):
    """The holder sent something else than what was asked for."""


class FetchError(TransportError):
    """None of the holders delivered."""

    def __init__(self, what: str, failures: tuple[tuple[str, HolderError], ...]) -> None:
        reasons = "; ".join(f"{holder}: {error.found}" for holder, error in failures)
        super().__init__(
            f"{what} from a holder",
            reasons or "no holder is known",
            "Another participant may have it later.",
        )
        self.failures = failures
