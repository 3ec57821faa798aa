"""Fetch: one trainer's submission from disk or from any holder, checked before any use.

Owns: every check that allows us to hold a submission (sections 4, 5.4 and 6) and who is asked.
Two levels: to *apply* an included payload, its header must be the committed one and its bytes
those that the header names (`obtain`); to *vouch* for it, every field must also be what the chain
says (`vouchable`). The second may fail where the first must not: a round that the majority
included is applied by all, whatever we think of its headers.
Never: touches a tensor with unchecked bytes. Next: `gather.py`, which decides for how long.
"""

from solders.pubkey import Pubkey

from troth_attestation import header as headers
from troth_attestation.errors import HeaderError, HeaderFieldError
from troth_attestation.expected import ExpectedHeader, check_signed_header
from troth_attestation.header import Header
from troth_attestation.state import data_root
from troth_client.compression import codec
from troth_client.compression.errors import MalformedPayloadError
from troth_client.compression.limits import payload_length
from troth_client.participant.peer import Peer
from troth_client.state.records import Held
from troth_client.storage.entries import Submission
from troth_client.transport.base import BlobId, BlobKind, Check
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.assignment import SequenceOrder, sequences_of
from troth_coordinator.rules.ids import NONE, Address, Digest, ParticipantIndex
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import NetworkView, RoundView, Status

SIGNED_HEADER_BYTES = headers.HEADER_BYTES + headers.SIGNATURE_BYTES


async def obtain(peer: Peer, round_: RoundView, view: NetworkView, index: int) -> Held:
    """Return the committed submission of a trainer, to apply it. Raises TransportError."""
    return await _submission(peer, round_, view, index, bytes)


async def vouchable(peer: Peer, round_: RoundView, view: NetworkView, index: int) -> Held:
    """Return a trainer's submission after every check that vouching for it needs.

    Raises HeaderFieldError naming the field that contradicts the chain, and TransportError. A
    payload that is not in canonical form is returned without being decoded.
    """
    held = await _submission(peer, round_, view, index, _check_signature)
    check_fields(peer, round_, view, held.submission)
    return held


def check_fields(
    peer: Peer, round_: RoundView, view: NetworkView, submission: Submission
) -> Header:
    """Check commitment, root vote, all fields and the signature of a header of `round_`."""
    index = submission.index
    header = headers.decode(submission.header)
    slot = round_.slots[index]
    expected = expected_header(peer, round_, view, index, header)
    check_signed_header(header, submission.signature, slot.header_hash, expected)
    # The vote on chain binds the header to one root; whether that root is right is decided by the
    # majority and by replay, not by us refusing to vouch for availability.
    vote = root_vote(peer.run, round_.round, header.owner, header.state_root)
    if vote != slot.root_vote:
        raise HeaderFieldError(
            "state_root",
            f"a root with the vote {slot.root_vote.hex()} that was committed on chain",
            f"{header.state_root.hex()} with the vote {vote.hex()}",
            "the vote was made for another root or copied from somebody; do not vouch for it",
        )
    return header


def expected_header(
    peer: Peer, round_: RoundView, view: NetworkView, index: int, header: Header
) -> ExpectedHeader:
    """Return what the chain says that the header committed by a trainer must contain."""
    entry, slot = view.entries[index], round_.slots[index]
    order = SequenceOrder(len(peer.data), peer.config.manifest_digest())
    per_payload = peer.config.train.sequences_per_payload
    num_tiles = peer.replica.layout.num_tiles
    return ExpectedHeader(
        genesis_hash=peer.genesis_hash,
        program_id=Address(bytes(peer.at.program)),
        run=peer.run,
        epoch=round_.epoch,
        round=round_.round,
        index=ParticipantIndex(index),
        owner=entry.owner,
        session=entry.session,
        config_hash=peer.config.config_hash(),
        state_root=header.state_root,
        data_root=data_root(sequences_of(order, round_, index, per_payload)),
        payload_bytes=payload_length(num_tiles, peer.config.demo.k),
        previous_included=slot.previous_included,
        residual_before=_residual_after(peer, slot.previous_included, index),
        zero_residual_root=peer.residual.zero_root,
    )


def expect_pushes(peer: Peer, round_: RoundView, view: NetworkView) -> None:
    """Accept the committed headers of a round, and then their payloads, from anybody who pushes.

    What is pushed is checked like what is fetched, then kept and served: a payload outlives its
    maker when others hold it.
    """
    size = payload_length(peer.replica.layout.num_tiles, peer.config.demo.k)

    def check_of(index: int) -> Check[object]:
        def check(data: bytes) -> None:
            raw, signature = data[: headers.HEADER_BYTES], data[headers.HEADER_BYTES :]
            submission = Submission(round_.round, index, raw, signature, b"")
            header = check_fields(peer, round_, view, submission)
            payload = BlobId(round_.round, BlobKind.PAYLOAD, header.payload_root)
            peer.transport.expect(payload, size, bytes)

        return check

    for index in bitmap.indices_of(round_.committed):
        blob = BlobId(round_.round, BlobKind.HEADER, round_.slots[index].header_hash)
        peer.transport.expect(blob, SIGNED_HEADER_BYTES, check_of(index))


async def endpoints(peer: Peer, view: NetworkView, first: int) -> list[str]:
    """Return everybody's address, that of `first` in front; asks the chain about new owners.

    Who has left is asked only for what is its own: it stays until its last audit is over.
    """
    living = {
        index: entry.owner
        for index, entry in enumerate(view.entries)
        if entry.status in (Status.PENDING, Status.ACTIVE, Status.INACTIVE, Status.JAILED)
        or (index == first and entry.status != Status.EMPTY)
    }
    known = {index: owner for index, (owner, _) in peer.endpoints.items()}
    unknown = {index: owner for index, owner in living.items() if known.get(index) != owner}
    if unknown:
        owners = [Pubkey(owner) for owner in unknown.values()]
        found = await peer.chain.read_participants(peer.at.run, owners)
        for (index, owner), participant in zip(unknown.items(), found, strict=True):
            peer.endpoints[index] = (owner, participant.endpoint if participant else "")
    order = sorted(living, key=lambda index: index != first)
    return [url for index in order if (url := peer.endpoints[index][1]) and index != peer.index]


async def _submission(
    peer: Peer, round_: RoundView, view: NetworkView, index: int, check: Check[object]
) -> Held:
    committed = round_.slots[index].header_hash
    submission = _stored(peer, round_.round, index, committed, check)
    if submission is None:
        submission = await _from_holders(peer, round_, view, index, check)
        peer.store.save_peer(submission)
    header = headers.decode(submission.header)
    num_tiles, k = peer.replica.layout.num_tiles, peer.config.demo.k
    try:
        decoded = codec.decode(submission.payload, num_tiles, k, header.payload_root)
    except MalformedPayloadError as error:
        peer.events.emit("payload_malformed", round=round_.round, index=index, reason=str(error))
        decoded = None
    return Held(submission, header, decoded)


def _stored(
    peer: Peer, round_: int, index: int, committed: bytes, check: Check[object]
) -> Submission | None:
    """Return the committed submission if it is on disk, our own or another's."""
    own = [peer.store.load_submission(round_)] if index == peer.index else []
    for found in (*own, peer.store.load_peer(round_, index)):
        if found is None or headers.header_hash(headers.decode(found.header)) != committed:
            continue
        try:
            check(found.header + found.signature)
        except HeaderError:
            continue  # a holder's lie that was good enough to apply; others have the signature
        return found
    return None


async def _from_holders(
    peer: Peer, round_: RoundView, view: NetworkView, index: int, check: Check[object]
) -> Submission:
    """Fetch header and payload from the trainer itself first, then from anybody."""
    holders = await endpoints(peer, view, index)

    def checked(data: bytes) -> bytes:
        check(data)
        return data

    committed = BlobId(round_.round, BlobKind.HEADER, round_.slots[index].header_hash)
    signed = await peer.transport.fetch(committed, holders, SIGNED_HEADER_BYTES, checked)
    raw, signature = signed[: headers.HEADER_BYTES], signed[headers.HEADER_BYTES :]
    size = payload_length(peer.replica.layout.num_tiles, peer.config.demo.k)
    root = BlobId(round_.round, BlobKind.PAYLOAD, headers.decode(raw).payload_root)
    payload = await peer.transport.fetch(root, holders, size, bytes)
    return Submission(round_.round, index, raw, signature, payload)


def _check_signature(data: bytes) -> None:
    """Whoever serves a committed header without its session key's signature is to blame."""
    header = headers.decode(data[: headers.HEADER_BYTES])
    headers.verify_signature(header, data[headers.HEADER_BYTES :])


def _residual_after(peer: Peer, round_: int, index: int) -> Digest | None:
    """Return the residual root of an earlier included header; None if we never saw that header."""
    if round_ == NONE:
        return None
    own = [peer.store.load_submission(round_)] if index == peer.index else []
    for found in (*own, peer.store.load_peer(round_, index)):
        if found is not None:
            return headers.decode(found.header).residual_after
    return None
