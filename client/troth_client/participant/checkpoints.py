"""Checkpoints of a member: made in the background when the chain has stored a root, and announced.

Owns: when to make one, the announcement, and the copies for hubs and stores.
Never: delays a round: the weights of a round are on disk before the round begins, and a thread
makes files of them.
Next: `checkpoint/making.py`; `housekeeping.py` calls this once a slot.
"""

from troth_attestation.committed import CommittedState, newest_state
from troth_attestation.errors import PieceListError
from troth_attestation.pieces import PieceList
from troth_client.checkpoint.errors import CheckpointError
from troth_client.checkpoint.folder import CheckpointFolder
from troth_client.checkpoint.making import make_checkpoint
from troth_client.member import Member
from troth_client.run_files.push import Pushed, offer, offer_pieces
from troth_client.runtime.files import DiskFullError, FolderInUseError
from troth_client.transport.base import BlobId, BlobKind
from troth_coordinator.chain import instructions
from troth_coordinator.chain.errors import REFUSALS
from troth_coordinator.rules.view import NetworkView


class Checkpoints:
    """Makes each checkpoint once; one that fails is reported, and the next one is tried again."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._tried: tuple[int, bytes] | None = None

    def is_due(self, view: NetworkView) -> bool:
        """Tell whether the newest checkpoint is not here, and its weights are on disk."""
        wanted, state = newest_state(view.run), self._member.state
        if wanted.round == 0 or (wanted.round, wanted.root) == self._tried:
            return False
        here = state.states.checkpoint(wanted.round)
        is_here = here is not None and here.pieces.root == wanted.root
        return not is_here and wanted.round in state.store.weight_rounds()

    async def make(self, view: NetworkView) -> None:
        """Write the newest checkpoint, show it to others, and announce it."""
        wanted, state = newest_state(view.run), self._member.state
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
            return
        if folder is None:
            return
        state.states.show_checkpoint(folder)
        now = state.runtime.seconds()
        took = None if began is None or now is None else round(now - began, 3)
        state.events.emit(
            "checkpoint_made", round=wanted.round, root=wanted.root.hex(), seconds=took
        )
        await self._announce(wanted, folder)
        await self._hand_out(folder.pieces)

    async def _hand_out(self, pieces: PieceList) -> None:
        """Offer the weights to each hub and store, so that latecomers need to reach no member."""
        submissions = self._member.submissions
        hashes = sorted({piece.hash for piece in pieces.pieces()})
        submissions.random.shuffle(hashes)  # members that begin together share the work
        for relay in submissions.relays:
            pushed = Pushed(relay)
            listed = BlobId(pieces.state.round, BlobKind.PIECES, pieces.root)
            await offer(submissions.transport, listed, pushed)
            if pushed.num_accepted:
                await offer_pieces(submissions.transport, hashes, pushed)

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
