"""Checkpoints of a member: made in the background when the chain has stored a root, and announced.

Owns: when to make one, the announcement, and which hub or store still lacks some of it.
Never: delays a round: the weights of a round are on disk before the round begins, and a thread
makes files of them.
Next: `checkpoint/making.py`; `housekeeping.py` calls this once a slot, `process.py` at the end.
"""

import asyncio
from itertools import repeat

from troth_attestation.committed import CommittedState, newest_state
from troth_attestation.errors import PieceListError
from troth_attestation.pieces import PieceList
from troth_client.checkpoint.errors import CheckpointError
from troth_client.checkpoint.folder import CheckpointFolder
from troth_client.checkpoint.making import make_checkpoint
from troth_client.member import Member
from troth_client.runtime.base import end
from troth_client.runtime.files import DiskFullError, FolderInUseError
from troth_client.runtime.memory import first_line
from troth_client.train.memory import give_back
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.offering import AT_A_TIME, Pushed, offer
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import REFUSALS
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView


class Checkpoints:
    """Makes each checkpoint once; one that fails is reported, and the next one is tried again."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._tried: tuple[int, bytes] | None = None
        self._offered: tuple[bytes, int] | None = None
        self._rest: dict[str, list[bytes]] = {}

    def is_due(self, view: NetworkView) -> bool:
        """Tell whether the newest checkpoint is not here, and its weights are on disk."""
        wanted, state = newest_state(view.run), self._member.state
        if wanted.round == 0 and not state.config.has_given_start:
            return False  # everybody computes it
        if (wanted.round, wanted.root) == self._tried:
            return False
        return self._newest(view) is None and wanted.round in state.store.weight_rounds()

    async def make(self, view: NetworkView) -> None:
        """Write the newest checkpoint, show it to others, and announce it."""
        wanted = newest_state(view.run)
        folder = await self._make(wanted)
        if folder is not None and wanted.round > 0:  # the program has no account for w_0
            await self._announce(wanted, folder)

    async def _make(self, wanted: CommittedState) -> CheckpointFolder | None:
        """Write a checkpoint and show it; None where that was not possible, which is an event."""
        state = self._member.state
        self._tried = (wanted.round, wanted.root)
        began = state.runtime.seconds()
        try:
            folder = await state.runtime.compute(
                make_checkpoint,
                state.store,
                state.states,
                wanted,
                self._member.replay.restore.manifest_of,
            )
        except (PieceListError, CheckpointError, DiskFullError, FolderInUseError) as error:
            state.events.emit("checkpoint_failed", round=wanted.round, reason=str(error))
            return None
        except MemoryError as error:
            give_back()
            reason = f"out of memory: {first_line(error)}"
            state.events.emit("checkpoint_failed", round=wanted.round, reason=reason)
            return None
        if folder is None:
            return None
        state.states.show_checkpoint(folder)
        now = state.runtime.seconds()
        took = None if began is None or now is None else round(now - began, 3)
        state.events.emit(
            "checkpoint_made", round=wanted.round, root=wanted.root.hex(), seconds=took
        )
        return folder

    def is_offer_due(self, view: NetworkView) -> bool:
        """Tell whether the newest checkpoint is here and a relay may lack some of it.

        After a restart we offer all of it again, and with each round what a relay did not take.
        """
        pieces = self._newest(view)
        if pieces is None:
            return False
        root, round_ = self._offered or (b"", -1)
        return pieces.root != root or (bool(self._rest) and view.run.round != round_)

    async def offer(self, view: NetworkView) -> None:
        """Offer the newest checkpoint to each relay, so that latecomers need to reach no member.

        It ends when each relay has all of it or takes no more now, or when a newer one is on chain.
        """
        pieces, submissions = self._newest(view), self._member.submissions
        if pieces is None:
            return
        if self._offered is None or self._offered[0] != pieces.root:
            hashes = sorted({piece.hash for piece in pieces.pieces()})
            submissions.random.shuffle(hashes)  # members that begin together share the work
            self._rest = {relay: list(hashes) for relay in submissions.relays}
        self._offered = pieces.root, view.run.round
        for relay in list(self._rest):
            await self._offer_to(relay, pieces)

    async def complete(self) -> None:
        """Offer the last checkpoint of a finished run before we end: no member may be left then.

        It ends when each relay has all of it, or takes no more, or a stop is asked for. The chain
        is neither asked nor told: it may be away.
        """
        view, state = self._member.chain.watch.latest, self._member.state
        relays = self._member.submissions.relays
        if view.run.phase != Phase.FINISHED or state.stop.is_set() or not relays:
            return
        if self.is_due(view):
            await self._make(newest_state(view.run))
        if not self.is_offer_due(view):
            return
        state.events.emit("offering", round=view.run.root_round, to=list(relays))
        offering = asyncio.ensure_future(self._offer_again(view))
        stopping = asyncio.ensure_future(state.stop.wait())
        try:
            await asyncio.wait((offering, stopping), return_when=asyncio.FIRST_COMPLETED)
            if offering.done():
                offering.result()
        finally:
            await end(offering, stopping)
        state.events.emit("checkpoint_offered", round=view.run.root_round, missing=self._num_left())

    async def _offer_again(self, view: NetworkView) -> None:
        """Offer until nothing is left, or nobody takes any of it."""
        before = 0
        await self.offer(view)
        while (left := self._num_left()) != before:
            before = left
            await self.offer(view)

    def _num_left(self) -> int:
        """Return how many pieces the relays have not taken."""
        return sum(map(len, self._rest.values()))

    async def _offer_to(self, relay: str, pieces: PieceList) -> None:
        """Offer a relay once what it may lack, and note what it did not take.

        Some of a batch may be refused because others offer at the same time. Where all of it is,
        the quota is spent, or the relay is away.
        """
        pushed, transport = Pushed(relay), self._member.submissions.transport
        state, rest, left = pieces.state, self._rest[relay], list[bytes]()
        # A hub reads the shapes from the config, and learns from the list which pieces there are.
        await offer(transport, BlobId(0, BlobKind.CONFIG, state.config_hash), pushed)
        await offer(transport, BlobId(state.round, BlobKind.PIECES, pieces.root), pushed)
        goes_on = pushed.has_taken
        while rest and goes_on and self._newest(self._member.chain.watch.latest) is pieces:
            batch, rest = rest[:AT_A_TIME], rest[AT_A_TIME:]
            answers = [Pushed(relay) for _ in batch]
            offered = (BlobId(0, BlobKind.PIECE, hash_) for hash_ in batch)
            await asyncio.gather(*map(offer, repeat(transport), offered, answers))
            left += [hash_ for hash_, one in zip(batch, answers, strict=True) if not one.has_taken]
            goes_on = any(one.has_taken for one in answers)
        self._rest[relay] = left + rest
        if not self._rest[relay]:
            del self._rest[relay]

    def _newest(self, view: NetworkView) -> PieceList | None:
        """Return the pieces of the newest checkpoint on chain, if it is here."""
        wanted = newest_state(view.run)
        here = self._member.state.states.checkpoint(wanted.round)
        return here.pieces if here is not None and here.pieces.root == wanted.root else None

    async def _announce(self, wanted: CommittedState, folder: CheckpointFolder) -> None:
        """Say on chain that we hold it: a hint for people, which costs one fee."""
        chain = self._member.chain
        manifest = instructions.Manifest(wanted.round, folder.manifest.digest(), "")
        step = instructions.announce_manifest(
            chain.at, chain.payer, chain.identity.owner, chain.index, manifest
        )
        try:
            sent = await chain.finish(chain.send(step))
        except REFUSALS as error:
            chain.events.emit("announce_refused", round=wanted.round, name=error.name)
        else:
            chain.events.emit("checkpoint_announced", round=wanted.round, fee=sent.fee_lamports)
