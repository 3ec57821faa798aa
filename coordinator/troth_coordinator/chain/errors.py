"""Everything that can go wrong between Python and the chain, as one exception tree.

    ChainError
    ├── ArtifactError              packaged IDL, layout or table missing, altered or not expressible
    ├── RpcError                   the node did not give a usable answer
    │   ├── RpcAddressError        an address that is none of JSON-RPC
    │   ├── RpcUnreachableError    refused, reset, HTTP status, answer too large
    │   │   ├── RpcTimeoutError    no answer in time
    │   │   └── RpcLimitedError    too many requests, or a node that is not in sync
    │   ├── RpcRefusedError        a JSON-RPC error object (code, text)
    │   ├── MalformedReplyError    an answer that is not what the method promises
    │   │   └── UnreadableRecordError  the record of one transaction, of no known shape
    │   ├── EventsMissingError     the node does not keep the inner calls, which carry events
    │   └── RpcDisagreementError   two nodes say different things about the same fact
    ├── ProgramIdError             the program itself
    │   ├── ProgramMissingError    nothing at the program id
    │   └── ForeignProgramError    something else at the program id
    ├── AccountError               an account that cannot be read as what it should be
    │   ├── AccountMissingError
    │   ├── AccountOwnerError
    │   ├── AccountTypeError       other discriminator
    │   ├── AccountSizeError
    │   ├── AccountVersionError
    │   └── AccountValueError      a number that no enum of ours knows
    ├── PriorityPolicyError        a priority fee policy that cannot be read
    └── TransactionError           a transaction that did not do what it should
        ├── TransactionRejectedError   refused before it was sent on (preflight)
        ├── TransactionFailedError     landed and failed, for a reason with no class of its own
        ├── ProgramRefusedError        the program said no: `.name` is the name in its error enum
        ├── InsufficientFundsError
        ├── RunFullError               no index is free to join at
        ├── BlockhashExpiredError
        ├── UnconfirmedError           sent, and neither seen nor expired
        ├── TransactionTooLargeError
        └── MissingSignerError

Owns: the classes and the words of each (expected, found, next step).
Never: retries, logs or reads the chain.
Next: program_errors.py maps a TransactionFailure to one of these; http_rpc.py raises most others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self, TypeAlias

from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.errors import SubjectError


class ChainError(SubjectError):
    """Root of the tree. Every message says what was expected, what was found and what to do."""


class ArtifactError(ChainError):
    """A packaged artefact is missing, altered, or says what we cannot express."""


class PriorityPolicyError(ChainError):
    """A policy for priority fees that is none of those that there are."""

    def __init__(self, text: str) -> None:
        super().__init__(
            "priority fee",
            "none, fixed:N (micro-lamports per compute unit) or percentile:P (1 to 100)",
            repr(text),
            "percentile:75 follows what others pay to write the same accounts",
        )


class RpcError(ChainError):
    """The node did not give a usable answer."""


class RpcAddressError(RpcError):
    """The address of a node does not begin with http:// or https://; nothing was asked."""


class RpcUnreachableError(RpcError):
    """No connection, a broken one, an HTTP error status, or more bytes than we accept."""

    def __init__(self, url: str, found: str, next_step: str = "") -> None:
        super().__init__(
            f"Solana RPC at {url}",
            "an answer",
            found,
            next_step
            or "check the address and that the node runs (`troth localnet up` starts a local one)",
        )
        self.url = url


class RpcTimeoutError(RpcUnreachableError):
    """The node took longer than the time allowed; the request may still have had its effect."""


class RpcLimitedError(RpcUnreachableError):
    """The node asks us to wait: too many requests, or it is behind the network itself.

    `retry_after_seconds` is the time that it named, None where it named none.
    """

    def __init__(self, url: str, found: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(url, found, "wait, or name one more node with another --rpc")
        self.retry_after_seconds = retry_after_seconds


class RpcRefusedError(RpcError):
    """The node answered with a JSON-RPC error object."""

    def __init__(self, method: str, code: int, text: str) -> None:
        super().__init__(
            f"RPC method {method}",
            "a result",
            f"error {code}: {text}",
            "check that the node supports this method and is in sync",
        )
        self.method = method
        self.code = code
        self.text = text


class MalformedReplyError(RpcError):
    """The answer is not JSON, or not of the shape that the method promises."""

    def __init__(self, method: str, found: str) -> None:
        super().__init__(
            f"RPC method {method}",
            "a well-formed reply",
            found,
            "the address may not be a Solana RPC, or it is broken: try another node",
        )
        self.method = method


class UnreadableRecordError(MalformedReplyError):
    """The record of one transaction is of no shape that we know; strangers can land any."""


class EventsMissingError(RpcError):
    """The node keeps a transaction without its inner calls, so its events cannot be read."""

    def __init__(self, signature: str) -> None:
        super().__init__(
            f"transaction {signature}",
            "its inner instructions, which carry the events",
            "null: the node does not keep them",
            "ask a node that keeps extended transaction metadata",
        )
        self.signature = signature


class Said(NamedTuple):
    """The value of a fact, and the node that says so."""

    node: str
    value: str


class RpcDisagreementError(RpcError):
    """Two nodes say different things about a fact that decides money or weights."""

    def __init__(self, fact: str, first: Said, second: Said) -> None:
        super().__init__(
            fact,
            f"{first.value}, as {first.node} says",
            f"{second.value}, as {second.node} says",
            "one of the two nodes lies or serves another network: find out which, and leave it out",
        )
        self.fact = fact
        self.first = first
        self.second = second


class ProgramIdError(ChainError):
    """The coordinator program is not where we look for it."""


class ProgramMissingError(ProgramIdError):
    """No account lives at the program id."""

    def __init__(self, program: str) -> None:
        super().__init__(
            f"program id {program}",
            "the coordinator program",
            "no account there",
            "deploy it, use an RPC of the network it is deployed on, or name it with --program-id",
        )


class ForeignProgramError(ProgramIdError):
    """An account lives at the program id, but it is not our program."""

    def __init__(self, program: str, found: str) -> None:
        super().__init__(
            f"program id {program}",
            "the coordinator program",
            found,
            "check the program id: this address belongs to something else",
        )


class AccountError(ChainError):
    """Account data cannot be read as what it should be."""


class AccountMissingError(AccountError):
    """The account does not exist on this chain."""

    def __init__(self, kind: str, address: str) -> None:
        super().__init__(
            f"address {address}",
            f"a {kind} account",
            "no account there",
            "check the run address and that the RPC serves the right network",
        )


class AccountOwnerError(AccountError):
    """The account belongs to another program."""


class AccountTypeError(AccountError):
    """The account has another discriminator than its kind."""


class AccountSizeError(AccountError):
    """The account is shorter or longer than its layout."""


class AccountVersionError(AccountError):
    """The account was written by another layout version."""


class AccountValueError(AccountError):
    """A field holds a number that this version does not know."""


class TransactionError(ChainError):
    """A transaction did not do what it should. `logs` are the program logs known so far."""

    def __init__(self, subject: str, expected: str, found: object, next_step: str) -> None:
        super().__init__(subject, expected, found, next_step)
        self.logs: tuple[str, ...] = ()

    def with_logs(self, logs: Sequence[str]) -> Self:
        """Attach the program log and return self."""
        self.logs = tuple(logs)
        return self


class _FailureError(TransactionError):
    """Shared body of errors that carry a TransactionFailure."""

    def __init__(self, failure: TransactionFailure, found: str, logs: Sequence[str]) -> None:
        super().__init__(
            "transaction",
            "success",
            found + (f" (last log line: {logs[-1]})" if logs else ""),
            "read the program log in `.logs`",
        )
        self.logs = tuple(logs)
        self.failure = failure
        self.name = type(self).__name__
        self.instruction = failure.instruction


class TransactionRejectedError(_FailureError):
    """Preflight refused the transaction: it was not forwarded and has changed nothing.

    Every `Rpc.send` raises exactly this; client.py sorts it into the named classes below.
    """

    def __init__(self, failure: TransactionFailure, logs: Sequence[str] = ()) -> None:
        super().__init__(failure, f"a refusal before sending: {failure}", logs)


class TransactionFailedError(_FailureError):
    """The transaction failed for a reason that has no class of its own."""

    def __init__(self, failure: TransactionFailure, logs: Sequence[str] = ()) -> None:
        super().__init__(failure, f"a failure: {failure}", logs)


class ProgramRefusedError(TransactionError):
    """The program refused an instruction by name.

    name: the variant of the program's error enum (or Anchor's, for framework checks).
    code: its number. instruction: position among the instructions that were given to send.
    """

    def __init__(
        self, name: str, code: int, text: str, next_step: str, failure: TransactionFailure
    ) -> None:
        super().__init__(
            "coordinator program",
            "an instruction that the run allows now",
            f"{name} ({code}): {text}",
            next_step,
        )
        self.name = name
        self.code = code
        self.text = text
        self.instruction = failure.instruction


class InsufficientFundsError(TransactionError):
    """The payer cannot pay the fee, the rent or the transfer."""

    name = "InsufficientFunds"
    instruction: int | None = None

    def __init__(self, payer: str, found: str) -> None:
        super().__init__(
            f"account {payer}",
            "enough lamports to pay",
            found,
            "send SOL to it (a localnet gives it for free), then repeat",
        )
        self.payer = payer


REFUSALS: Final = (
    ProgramRefusedError,
    TransactionRejectedError,
    TransactionFailedError,
    InsufficientFundsError,
)
"""The chain did not do what was sent, and said why: by the program's name, or by the runtime's, as
where compute units ran out. Each has a `name` and the `instruction` at fault, where one is."""
Refusal: TypeAlias = (
    ProgramRefusedError | TransactionRejectedError | TransactionFailedError | InsufficientFundsError
)


class RunFullError(TransactionError):
    """No index is free: nothing was sent."""

    def __init__(self, run: str, capacity: int) -> None:
        super().__init__(
            f"run {run}",
            "a free index",
            f"{capacity} taken or left less than a ring of rounds ago",
            "wait until somebody has left, or join another run",
        )


class BlockhashExpiredError(TransactionError):
    """Each blockhash has expired, and no node shows that the transaction landed.

    `look`: the command that shows whether a payment, which is signed once, landed all the same.
    """

    def __init__(self, num_attempts: int, look: str = "") -> None:
        found = (
            "one attempt that no node shows" if look else f"{num_attempts} attempts, none landed"
        )
        step = "the network is congested or drops our transactions: raise the priority fee or retry"
        once = f"the payment may have landed all the same: look ({look}) before you repeat it"
        subject, expected = "transaction", "to land before its blockhash expired"
        super().__init__(subject, expected, found, once if look else step)
        self.num_attempts = num_attempts


class UnconfirmedError(TransactionError):
    """The transaction was sent, but the chain stood still or the node stayed silent.

    It may still land. Sending it again is safe where the instruction itself refuses repetition.
    """

    def __init__(self, signature: str, cause: RpcError | None) -> None:
        super().__init__(
            f"transaction {signature}",
            "to be confirmed or to expire",
            "neither" if cause is None else f"neither ({cause})",
            "look the signature up before sending again",
        )
        self.signature = signature
        self.cause = cause


class TransactionTooLargeError(TransactionError):
    """The serialised transaction exceeds the network's limit."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        expected, found = f"at most {limit_bytes} bytes", f"{size_bytes} bytes"
        step = "put fewer instructions into one transaction"
        super().__init__("transaction", expected, found, step)


class MissingSignerError(TransactionError):
    """The transaction needs a signature for which no key was given."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__(
            "transaction",
            "a key for every signer",
            f"none for {', '.join(missing)}",
            "pass the owner's, session's or authority's key that the instruction names",
        )
