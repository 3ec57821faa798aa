"""Fetch: one trainer's submission from disk or from any holder, checked before any use.

Owns: every check that allows us to hold a submission (sections 4, 5.4 and 6) and who is asked.
Never: touches a tensor with unchecked bytes. Next: `gather.py`, which decides for how long.
"""

from solders.pubkey import Pubkey

from troth_attestation import header as headers
from troth_attestation.errors import AttestationError
from troth_attestation.expected import ExpectedHeader, check_signed_header
from troth_attestation.header import Header
from troth_attestation.state import data_root, zero_residual_root
from troth_client.payload import codec
from troth_client.payload.errors import MalformedPayloadError, PayloadError
from troth_client.payload.limits import payload_length
from troth_client.peer import Peer
from troth_client.steps.records import Held
from troth_client.store.entries import Submission
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import TransportError
from troth_coordinator.rules import bitmap
from troth_coordinator.rules.assignment import SequenceOrder, sequences_of
from troth_coordinator.rules.ids import NONE, Address, Digest
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import NetworkView, RoundView, Status

SIGNED_HEADER_BYTES = headers.HEADER_BYTES + headers.SIGNATURE_BYTES


async def fetch_submission(
    peer: Peer, round_: RoundView, view: NetworkView, index: int
) -> Held | None:
    """Return one trainer's checked submission, or None after an event that says why not."""
    try:
        submission = stored_submission(peer, round_, index)
        if submission is None:
            submission = await _from_holders(peer, round_, view, index)
        return check_submission(peer, round_, view, submission)
    except (AttestationError, PayloadError, TransportError) as error:
        peer.events.emit("fetch_failed", round=round_.round, index=index, reason=str(error))
        return None


def stored_submission(peer: Peer, round_: RoundView, index: int) -> Submission | None:
    """Return the submission of a round that this peer keeps on disk, its own or another's."""
    found = known_submission(peer, round_.round, index)
    if found is None:
        return None
    committed = round_.slots[index].header_hash
    return found if headers.header_hash(headers.decode(found.header)) == committed else None


def known_submission(peer: Peer, round_: int, index: int) -> Submission | None:
    """Return whatever submission of a round and index is on disk."""
    if index == peer.index:
        return peer.store.load_submission(round_)
    return peer.store.load_peer(round_, index)


def check_submission(
    peer: Peer, round_: RoundView, view: NetworkView, submission: Submission
) -> Held:
    """Check header, signature, payload length and root against the chain, then decode.

    Raises HeaderError naming the field, or PayloadError. A payload of the right root that is not
    in canonical form is held without being decoded.
    """
    index = submission.index
    header = headers.decode(submission.header)
    expected = expected_header(peer, round_, view, header)
    check_signed_header(header, submission.signature, round_.slots[index].header_hash, expected)
    try:
        decoded = codec.decode(
            submission.payload,
            peer.replica.layout.num_tiles,
            peer.config.demo.k,
            header.payload_root,
        )
    except MalformedPayloadError as error:
        peer.events.emit("payload_malformed", round=round_.round, index=index, reason=str(error))
        decoded = None
    return Held(submission, header, decoded)


def expected_header(
    peer: Peer, round_: RoundView, view: NetworkView, header: Header
) -> ExpectedHeader:
    """Return what the chain says that a committed header of a round must contain."""
    index = bitmap.checked_index(header.index)
    entry, slot = view.entries[index], round_.slots[index]
    order = SequenceOrder(len(peer.data), peer.config.manifest_digest())
    per_payload = peer.config.train.sequences_per_payload
    num_tiles = peer.replica.layout.num_tiles
    vote = root_vote(peer.run, round_.round, entry.owner, header.state_root)
    return ExpectedHeader(
        genesis_hash=peer.genesis_hash,
        program_id=Address(bytes(peer.at.program)),
        run=peer.run,
        epoch=round_.epoch,
        round=round_.round,
        index=index,
        owner=entry.owner,
        session=entry.session,
        config_hash=peer.config.config_hash(),
        # The vote on chain binds the header to one root; whether that root is right is decided by
        # the majority and by replay, not by us refusing to vouch for availability.
        state_root=header.state_root if vote == slot.root_vote else peer.replica.root(),
        data_root=data_root(sequences_of(order, round_, index, per_payload)),
        payload_bytes=payload_length(num_tiles, peer.config.demo.k),
        previous_included=slot.previous_included,
        residual_before=_residual_after(peer, slot.previous_included, index),
        zero_residual_root=zero_residual_root(num_tiles),
    )


def expect_pushes(peer: Peer, round_: RoundView, view: NetworkView) -> None:
    """Accept the committed headers of a round, and then their payloads, from anybody who pushes.

    What is pushed is checked like what is fetched, then kept and served: a payload outlives its
    maker when others hold it.
    """
    size = payload_length(peer.replica.layout.num_tiles, peer.config.demo.k)

    def check_header_of(data: bytes) -> bytes:
        header = headers.decode(data[: headers.HEADER_BYTES])
        committed = round_.slots[bitmap.checked_index(header.index)].header_hash
        expected = expected_header(peer, round_, view, header)
        check_signed_header(header, data[headers.HEADER_BYTES :], committed, expected)
        payload = BlobId(round_.round, BlobKind.PAYLOAD, header.payload_root)
        peer.transport.expect(payload, size, bytes)
        return data

    for index in bitmap.indices_of(round_.committed):
        committed = round_.slots[index].header_hash
        blob = BlobId(round_.round, BlobKind.HEADER, committed)
        peer.transport.expect(blob, SIGNED_HEADER_BYTES, check_header_of)


def _residual_after(peer: Peer, round_: int, index: int) -> Digest | None:
    """Return the residual root of an earlier included header; None if we never saw that header."""
    if round_ == NONE:
        return None
    found = known_submission(peer, round_, index)
    return None if found is None else headers.decode(found.header).residual_after


async def _from_holders(peer: Peer, round_: RoundView, view: NetworkView, index: int) -> Submission:
    """Fetch header and payload from the trainer itself first, then from anybody."""
    holders = await endpoints(peer, view, index)
    committed = BlobId(round_.round, BlobKind.HEADER, round_.slots[index].header_hash)
    signed = await peer.transport.fetch(committed, holders, SIGNED_HEADER_BYTES, bytes)
    header = headers.decode(signed[: headers.HEADER_BYTES])
    size = payload_length(peer.replica.layout.num_tiles, peer.config.demo.k)
    root = BlobId(round_.round, BlobKind.PAYLOAD, header.payload_root)
    payload = await peer.transport.fetch(root, holders, size, bytes)
    signature = signed[headers.HEADER_BYTES :]
    submission = Submission(round_.round, index, headers.encode(header), signature, payload)
    peer.store.save_peer(submission)
    return submission


async def endpoints(peer: Peer, view: NetworkView, first: int) -> list[str]:
    """Return everybody's address, that of `first` in front; asks the chain about new owners."""
    living = {
        index: entry.owner
        for index, entry in enumerate(view.entries)
        if entry.status in (Status.PENDING, Status.ACTIVE, Status.INACTIVE, Status.JAILED)
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
