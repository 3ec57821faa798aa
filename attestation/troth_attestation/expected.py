"""Checks a header field by field against what the chain says (protocol sections 4 and 6).

Owns: the expected value of each field and the error that names the first one that differs.
Never: fetches; the caller has read the chain and replayed the weights.
Next: `header.py` for bytes, hash and signature.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from troth_attestation.errors import HeaderFieldError
from troth_attestation.header import Header, check_commitment, verify_signature
from troth_coordinator.rules.ids import NONE, Address, Digest, ParticipantIndex, RoundIndex

_EXACT = (
    ("genesis_hash", "the cluster's genesis hash: this header belongs to another cluster"),
    ("program_id", "the run's program: this header belongs to another program"),
    ("run", "the run's address: this header belongs to another run"),
    ("epoch", "the epoch of the round account"),
    ("round", "the open round: this header belongs to another round"),
    ("index", "the participant's index"),
    ("owner", "the owner in the roster entry"),
    ("session", "the session key in the roster entry"),
    ("config_hash", "the config hash of the run"),
    ("state_root", "the root of the weights replayed here"),
    ("data_root", "the root over the assigned sequences"),
    ("payload_bytes", "the payload length of this model and k"),
)


@dataclass(frozen=True, slots=True)
class ExpectedHeader:
    """The values that a header of one participant in one round must have.

    `previous_included` is the field of the participant's entry: NONE without an included payload in
    this residual period. `residual_before` is the residual root after in that round's header. It is
    None if this verifier never saw that header; then only the declared round is checked.
    `zero_residual_root` is the root that any header may declare with previous round NONE.
    """

    genesis_hash: Digest
    program_id: Address
    run: Address
    epoch: int
    round: RoundIndex
    index: ParticipantIndex
    owner: Address
    session: Address
    config_hash: Digest
    state_root: Digest
    data_root: Digest
    payload_bytes: int
    previous_included: RoundIndex
    residual_before: Digest | None
    zero_residual_root: Digest


def check_header(header: Header, expected: ExpectedHeader) -> None:
    """Raise HeaderFieldError naming the first field that contradicts the chain."""
    for error in field_errors(header, expected):
        raise error


def check_signed_header(
    header: Header, signature: bytes, committed_hash: bytes, expected: ExpectedHeader
) -> None:
    """Check commitment, every field and the signature; raises the HeaderError of the first."""
    check_commitment(header, committed_hash)
    check_header(header, expected)
    verify_signature(header, signature)


def field_errors(header: Header, expected: ExpectedHeader) -> Iterator[HeaderFieldError]:
    """Yield one error for each field that contradicts the chain, in header order."""
    for name, meaning in _EXACT:
        found, wanted = getattr(header, name), getattr(expected, name)
        if found != wanted:
            yield _error(name, wanted, found, f"expected is {meaning}; do not vouch for it")
    yield from _residual_errors(header, expected)


def _residual_errors(header: Header, expected: ExpectedHeader) -> Iterator[HeaderFieldError]:
    if header.previous_included == NONE:
        if header.residual_before != expected.zero_residual_root:
            yield _error(
                "residual_before",
                expected.zero_residual_root,
                header.residual_before,
                "without a previous round the residual is zero; do not vouch for it",
            )
        return
    if header.previous_included != expected.previous_included:
        yield _error(
            "previous_included",
            _either_none_or(expected.previous_included),
            header.previous_included,
            "a round that was not included never counts; do not vouch for it",
        )
    elif expected.residual_before not in (None, header.residual_before):
        yield _error(
            "residual_before",
            expected.residual_before,
            header.residual_before,
            "expected is the residual root after of the previous included header; "
            "do not vouch for it",
        )


def _error(name: str, expected: object, found: object, next_step: str) -> HeaderFieldError:
    return HeaderFieldError(name, _shown(expected), _shown(found), next_step)


def _either_none_or(round_: RoundIndex) -> str:
    return "none" if round_ == NONE else f"{round_} or none"


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return "none" if value == NONE else str(value)
