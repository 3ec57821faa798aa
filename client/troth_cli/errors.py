"""Errors of the command line itself, as one tree.

    ClientError
    └── CommandError
        ├── KeyFileError              a key file that cannot be used
        │   ├── KeyFileMissingError
        │   ├── KeyFileContentError   not 64 numbers, or halves that do not belong together
        │   └── KeyFileExistsError    a new key would overwrite a file
        ├── InputError                an address, an amount or a choice that cannot be read
        ├── LedgerMissingError        no ledger of the run, and no RPC node to read it from
        ├── OutputFileError           a result cannot be written where it was asked for
        ├── EventLogError             a file that is no event log, or shows no round
        ├── SettingsError             a table of the config file that is for the command line
        ├── FundsError                the key cannot pay for what was asked
        ├── DeployError               a program that cannot be deployed as it was asked for
        │   └── DeployStoppedError    a deploy that was begun and not finished; its buffer is named
        ├── DiskSpaceError            the disk has no room for what was asked
        ├── PushError                 a holder that files were offered to cannot be reached
        ├── OtherRunError             a run that is not what was asked for
        ├── NodesSilentError          no RPC node says what the Run account is
        ├── CheckpointMissingError    the chain names no root for that round
        ├── DifferentWeightsError     weights that do not have the root on chain
        ├── CaseError                 a case that cannot be opened or appealed
        ├── NotInVainError            a run that cannot be given up, or not yet
        ├── CannotBeginError          a run that its authority cannot begin, or not yet
        ├── LedgerNotProvenError      a ledger that the chain hash on chain does not prove
        ├── JoinRefusedError          checks that speak against a deposit
        ├── TooLateError              joining ends before the weights can be here
        ├── MachineTooSlowError       work that takes longer than its window
        ├── BoundsError               honest work that the judge's bounds do not call ok
        ├── UnreachableError          a machine that others cannot connect to
        ├── LeftError                 a key that has left, and would deposit again unasked
        ├── OtherFolderError          a state folder that is not that of the place in the run
        ├── OtherKeyError             a key that may not do what was asked
        ├── NotDueError               rewards or stake that may not be paid out yet
        └── NotJoinedError            the key takes no part in the run

Owns: the classes. Never: errors of a part. Next: `failures.py`, which prints errors of every tree.
"""

from collections.abc import Mapping, Sequence

from troth_client.errors import ClientError


class CommandError(ClientError):
    """Base of all errors of `troth_cli`."""


class KeyFileError(CommandError):
    """A key file cannot be used."""


class KeyFileMissingError(KeyFileError):
    """There is no such file, or it cannot be read."""


class KeyFileContentError(KeyFileError):
    """The file does not hold a key as Solana's tools write it."""


class KeyFileExistsError(KeyFileError):
    """A new key would overwrite a file; it never does."""


class InputError(CommandError):
    """An address, an amount or a choice cannot be read."""


class LedgerMissingError(CommandError):
    """There is no ledger of the run, and no RPC node to read it from."""


class OutputFileError(CommandError):
    """A result cannot be written where it was asked for."""


class EventLogError(CommandError):
    """A file is no event log, or its events show no closed round."""


class SettingsError(CommandError):
    """A table of the config file that is for the command line cannot be used."""


class FundsError(CommandError):
    """The key cannot pay for what was asked."""


class DeployError(CommandError):
    """A program cannot be deployed as it was asked for; nothing was sent."""


class DeployStoppedError(DeployError):
    """A deploy that was begun did not finish; the message names its buffer and what it holds."""


class DiskSpaceError(CommandError):
    """The disk has no room for what was asked."""


class PushError(CommandError):
    """A holder to which files were offered cannot be reached."""


class OtherRunError(CommandError):
    """The run on chain is not the one that was asked for."""


class NodesSilentError(CommandError):
    """No RPC node that was named says what the Run account is."""


class CheckpointMissingError(CommandError):
    """The chain names no state root of that round."""


class DifferentWeightsError(CommandError):
    """Weights do not have the root that the chain names.

    `name` is the first tensor that differs, "" where nobody could tell.
    """

    def __init__(
        self, expected: str, found: str, next_step: str, subject: str, name: str = ""
    ) -> None:
        super().__init__(expected, found, next_step, subject)
        self.name = name


class CaseError(CommandError):
    """A case cannot be opened or appealed as it was asked for."""


class LedgerNotProvenError(CommandError):
    """The chain hash on chain does not prove all events of a ledger."""


class NotInVainError(CommandError):
    """The run cannot be cancelled: it works, may still begin, or has not waited long enough."""


class CannotBeginError(CommandError):
    """The authority cannot begin the run: it does not wait, or too few have joined."""


class NotJoinedError(CommandError):
    """The key takes no part in the run."""


class OtherKeyError(CommandError):
    """The run takes another key for this; `name` is the program's refusal."""

    def __init__(self, expected: str, found: str, next_step: str, subject: str, name: str) -> None:
        super().__init__(expected, found, next_step, subject)
        self.name = name


class NotDueError(CommandError):
    """Nothing may be paid out yet; `name` is the program's refusal, `found` says what is due when.

    Raised for `claim` and `withdraw`.
    """

    def __init__(self, expected: str, found: str, next_step: str, subject: str, name: str) -> None:
        super().__init__(expected, found, next_step, subject)
        self.name = name


class TooLateError(CommandError):
    """Joining ends before this machine can have the weights; only a check's result names it."""


class MachineTooSlowError(CommandError):
    """Work takes longer than its window; only a check's result names it."""


class BoundsError(CommandError):
    """The judge's bounds do not call honest work ok; only a check's result names it."""


class UnreachableError(CommandError):
    """Nobody can connect to this machine; only a check's result names it."""


class LeftError(CommandError):
    """A key that has left would deposit again unasked; only a check's result names it."""


class OtherFolderError(CommandError):
    """A member's state lies in another folder; only a check's result names it."""


class JoinRefusedError(CommandError):
    """Checks speak against a deposit; `checks` has the results of all, as --json prints them."""

    def __init__(
        self,
        expected: str,
        found: str,
        next_step: str,
        subject: str,
        checks: Sequence[Mapping[str, object]],
    ) -> None:
        super().__init__(expected, found, next_step, subject)
        self.checks = list(checks)
