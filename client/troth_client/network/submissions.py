"""Everybody's submissions: from disk or from any holder, checked before any use.

Owns: every check that allows us to hold a submission (sections 4, 5.4 and 6), and the holders to
ask. There are two levels. To *apply* an included payload, its header must be the committed one and
its bytes must match the header (`obtain`). To *vouch* for it, every field must also match the chain
(`vouchable`). A payload may pass the first and fail the second: everybody applies what the majority
included.
Never: touches a tensor with unchecked bytes. Next: `steps/gather.py`, which decides for how long.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from solders.pubkey import Pubkey

from troth_attestation import header as headers
from troth_attestation.errors import HeaderError, HeaderFieldError
from troth_attestation.expected import ExpectedHeader, check_signed_header
from troth_attestation.header import Header
from troth_attestation.state import data_root
from troth_client.compression import codec
from troth_client.compression.errors import MalformedPayloadError
from troth_client.compression.limits import payload_length
from troth_client.network.chain import RunChain
from troth_client.network.expecting import SIGNED_HEADER_BYTES, expect_submissions
from troth_client.network.watch import RPC_FAILURES
from troth_client.state.records import Held
from troth_client.state.round_state import RoundState
from troth_client.storage.entries import Submission
from troth_client.transport.base import BlobId, BlobKind, Check, Transport
from troth_coordinator.rules.assignment import sequences_of
from troth_coordinator.rules.ids import NONE, Address, Digest, ParticipantIndex
from troth_coordinator.rules.root import root_vote
from troth_coordinator.rules.view import NetworkView, RoundView, Status

LIVING = (Status.PENDING, Status.ACTIVE, Status.INACTIVE, Status.JAILED)
"""Statuses in which a participant serves what others ask for."""
REREAD_SLOTS = 64
"""An endpoint is read again so many slots after the last attempt."""


@dataclass(slots=True)
class Submissions:
    """The submissions of a run as one participant holds, fetches and serves them.

    `random` orders the holders. `relays` are hubs and object stores: they are asked, and pushed to,
    beside the members. `endpoints_of` caches the owner and address of each index, `read_at` the
    slot of the last attempt to read it.
    """

    chain: RunChain
    state: RoundState
    transport: Transport
    random: Random
    relays: tuple[str, ...] = ()
    endpoints_of: dict[int, tuple[Address, str]] = field(default_factory=dict)
    read_at: dict[int, int] = field(default_factory=dict)
    _reading: "asyncio.Task[None] | None" = field(default=None, init=False, repr=False)

    @property
    def payload_bytes(self) -> int:
        """The length of every payload of this run."""
        return payload_length(self.state.num_tiles, self.state.config.demo.k)

    async def obtain(self, round_: RoundView, view: NetworkView, index: int) -> Held:
        """Return the committed submission of a trainer, to apply it. Raises TransportError."""
        return await self._held(round_, view, index, bytes)

    async def header(self, round_: RoundView, view: NetworkView, index: int) -> Header:
        """Return the committed header of a trainer, from disk or any holder. TransportError."""
        stored = self._stored(round_.round, index, round_.ballots[index].header_hash, bytes)
        if stored is not None:
            return headers.decode(stored.header)
        holders = await self.endpoints(view, index)
        signed = await self._signed_header(round_, holders, index, bytes)
        return headers.decode(signed[: headers.HEADER_BYTES])

    async def vouchable(self, round_: RoundView, view: NetworkView, index: int) -> Held:
        """Return a trainer's submission after every check that vouching for it needs.

        Raises HeaderFieldError naming the field that contradicts the chain, and TransportError. A
        payload that is not in canonical form is returned without being decoded.
        """
        held = await self._held(round_, view, index, _check_signature)
        self.check_fields(round_, view, held.submission)
        return held

    def check_fields(self, round_: RoundView, view: NetworkView, submission: Submission) -> Header:
        """Check commitment, root vote, all fields and the signature of a header of `round_`."""
        index = submission.index
        header = headers.decode(submission.header)
        ballot = round_.ballots[index]
        expected = self.expected_header(round_, view, index, header)
        check_signed_header(header, submission.signature, ballot.header_hash, expected)
        # The vote on chain binds the header to one root; whether that root is right is decided by
        # the majority and by replay, not by us refusing to vouch for availability.
        vote = root_vote(self.chain.run, round_.round, header.owner, header.state_root)
        if vote != ballot.root_vote:
            raise HeaderFieldError(
                "state_root",
                f"a root with the vote {ballot.root_vote.hex()} that was committed on chain",
                f"{header.state_root.hex()} with the vote {vote.hex()}",
                "the vote was made for another root or copied from somebody; do not vouch for it",
            )
        return header

    def expected_header(
        self, round_: RoundView, view: NetworkView, index: int, header: Header
    ) -> ExpectedHeader:
        """Return what the chain says that the header committed by a trainer must contain."""
        entry, ballot, config = view.entries[index], round_.ballots[index], self.state.config
        per_payload = config.train.sequences_per_payload
        return ExpectedHeader(
            genesis_hash=self.chain.genesis_hash,
            program_id=Address(bytes(self.chain.at.program)),
            run=self.chain.run,
            epoch=round_.epoch,
            round=round_.round,
            index=ParticipantIndex(index),
            owner=entry.owner,
            session=entry.session,
            config_hash=config.config_hash(),
            state_root=header.state_root,
            data_root=data_root(sequences_of(self.state.order, round_, index, per_payload)),
            payload_bytes=self.payload_bytes,
            previous_included=ballot.previous_included,
            residual_before=self._residual_after(ballot.previous_included, index),
            zero_residual_root=self.state.residual.zero_root,
        )

    def hold(self, submission: Submission) -> None:
        """Serve our own header and payload; nobody reads them before the round's release."""
        header = headers.decode(submission.header)
        of_round = submission.round
        signed = BlobId(of_round, BlobKind.HEADER, headers.header_hash(header))
        self.transport.hold(signed, submission.header + submission.signature)
        payload = BlobId(of_round, BlobKind.PAYLOAD, header.payload_root)
        self.transport.hold(payload, submission.payload)

    def expect_pushes(self, round_: RoundView, view: NetworkView) -> None:
        """Accept the committed headers of a round, and then their payloads, from anybody.

        Pushed bytes are checked like fetched ones, then kept and served. So a payload survives its
        maker's end, because others hold it.
        """

        def check(index: int, header: Header, signature: bytes) -> None:
            raw = headers.encode(header)
            self.check_fields(round_, view, Submission(round_.round, index, raw, signature, b""))

        expect_submissions(self.transport, round_, check)

    async def endpoints(self, view: NetworkView, first: int) -> list[str]:
        """Return whom to ask: `first`, then the relays, then all others in random order.

        So all who hold a payload share the work of serving it. Asks the chain about new owners.
        A participant that has left is asked only for its own submissions, which it serves until
        its last audit ends. Raises RpcError.
        """
        living = [
            index
            for index, entry in enumerate(view.entries)
            if entry.status in LIVING or (index == first and entry.status != Status.EMPTY)
        ]
        found = await self.addresses(view, living)
        own = [found.pop(first)] if first in found else []
        others = list(found.values())
        return [*own, *self.relays, *self.random.sample(others, len(others))]

    async def members(self, view: NetworkView) -> list[str]:
        """Return the endpoints of all other members, to push to."""
        living = [i for i, entry in enumerate(view.entries) if entry.status in LIVING]
        return list((await self.addresses(view, living)).values())

    async def addresses(self, view: NetworkView, indices: Sequence[int]) -> dict[int, str]:
        """Return the endpoints of these participants in their order, without our own.

        Those without an endpoint are left out. Asks the chain about new owners at once, and about
        all others from time to time: anybody may announce another endpoint. Calls beside each
        other read the chain once. Raises RpcError when new owners cannot be read.
        """
        owners = {index: view.entries[index].owner for index in indices}
        while unknown := self._unknown(owners):
            await self._read_together(view, unknown)
        oldest = min((self.read_at.setdefault(i, view.slot) for i in owners), default=view.slot)
        if abs(view.slot - oldest) >= REREAD_SLOTS:
            # Before the answer: calls beside this one go on with the endpoints from before.
            self.read_at.update(dict.fromkeys(owners, view.slot))
            try:
                await self._read_endpoints(view, owners)
            except RPC_FAILURES as error:
                self.chain.watch.report(error)
        own = self.chain.index
        return {i: url for i in owners if (url := self.endpoints_of[i][1]) and i != own}

    def _unknown(self, owners: Mapping[int, Address]) -> dict[int, Address]:
        known = {index: owner for index, (owner, _) in self.endpoints_of.items()}
        return {index: owner for index, owner in owners.items() if known.get(index) != owner}

    async def _read_together(self, view: NetworkView, owners: Mapping[int, Address]) -> None:
        """Read these endpoints, or wait for the reading under way, which may be of others."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_endpoints(view, owners))
        await asyncio.shield(self._reading)  # the end of one call ends it for no other

    async def _read_endpoints(self, view: NetworkView, owners: Mapping[int, Address]) -> None:
        found = await self.chain.read_participants([Pubkey(one) for one in owners.values()])
        for (index, owner), participant in zip(owners.items(), found, strict=True):
            self.endpoints_of[index] = (owner, participant.endpoint if participant else "")
            self.read_at[index] = view.slot

    async def _held(
        self, round_: RoundView, view: NetworkView, index: int, check: Check[object]
    ) -> Held:
        committed, compute = round_.ballots[index].header_hash, self.state.runtime.compute
        submission = self._stored(round_.round, index, committed, check)
        if submission is None:
            submission = await self._from_holders(round_, view, index, check)
            await compute(self.state.store.save_peer, submission)
        header = headers.decode(submission.header)
        num_tiles, k = self.state.num_tiles, self.state.config.demo.k
        try:
            decoded = await compute(
                codec.decode, submission.payload, num_tiles, k, header.payload_root
            )
        except MalformedPayloadError as error:
            self.state.events.emit(
                "payload_malformed", round=round_.round, index=index, reason=str(error)
            )
            decoded = None
        return Held(submission, header, decoded)

    def _stored(
        self, round_: int, index: int, committed: bytes, check: Check[object]
    ) -> Submission | None:
        """Return the committed submission if it is on disk, our own or another's."""
        for found in self.kept(round_, index):
            if headers.header_hash(headers.decode(found.header)) != committed:
                continue
            try:
                check(found.header + found.signature)
            except HeaderError:
                continue  # enough to apply, with a false signature; others hold the true one
            return found
        return None

    def kept(self, round_: int, index: int) -> list[Submission]:
        """Return a trainer's submission from disk: our own as made, others as fetched."""
        store = self.state.store
        own = store.load_submission(round_) if index == self.chain.index else None
        found = (own, store.load_peer(round_, index))
        return [submission for submission in found if submission is not None]

    async def _from_holders(
        self, round_: RoundView, view: NetworkView, index: int, check: Check[object]
    ) -> Submission:
        """Fetch header and payload from the trainer itself first, then from anybody."""
        holders = await self.endpoints(view, index)
        signed = await self._signed_header(round_, holders, index, check)
        raw, signature = signed[: headers.HEADER_BYTES], signed[headers.HEADER_BYTES :]
        root = BlobId(round_.round, BlobKind.PAYLOAD, headers.decode(raw).payload_root)
        payload = await self.transport.fetch(root, holders, self.payload_bytes, bytes)
        return Submission(round_.round, index, raw, signature, payload)

    async def _signed_header(
        self, round_: RoundView, holders: Sequence[str], index: int, check: Check[object]
    ) -> bytes:
        def checked(data: bytes) -> bytes:
            check(data)
            return data

        committed = BlobId(round_.round, BlobKind.HEADER, round_.ballots[index].header_hash)
        return await self.transport.fetch(committed, holders, SIGNED_HEADER_BYTES, checked)

    def _residual_after(self, round_: int, index: int) -> Digest | None:
        """Return the residual root of an earlier included header; None if we never saw it."""
        if round_ == NONE:
            return None
        for found in self.kept(round_, index):
            return headers.decode(found.header).residual_after
        return None


def _check_signature(data: bytes) -> None:
    """Refuse a committed header that its session key did not sign: its holder is to blame."""
    header = headers.decode(data[: headers.HEADER_BYTES])
    headers.verify_signature(header, data[headers.HEADER_BYTES :])
