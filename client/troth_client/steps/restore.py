"""Restore: weights from others, checked under a root that the chain names (sections 9 and 10).

Owns: fetching the newest checkpoint, for latecomers and for LAGGING members; and HEALING, which
fetches only the pieces of a round that differ from ours.
Never: takes a byte that is not under the root, or decides that replay is not enough: `replay.py`
does. Next: `checkpoint/fetch.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from troth_attestation.committed import CommittedState, newest_state, round_state
from troth_attestation.manifest import CheckpointManifest
from troth_attestation.pieces import Piece, PieceList, pieces_of
from troth_client.checkpoint.errors import CheckpointFileError, CheckpointGoneError
from troth_client.checkpoint.fetch import fetch_draft, fetch_list, fetch_pieces
from troth_client.checkpoint.folder import CheckpointFolder, Draft, Weights
from troth_client.model.init import initial_weights
from troth_client.model.shapes import trainable_shapes
from troth_client.network.chain import RunChain
from troth_client.network.errors import DisputedError, LaggingError, StoppedError, TooSlowError
from troth_client.network.named_tasks import run_beside
from troth_client.network.submissions import Submissions
from troth_client.runtime.files import FolderInUseError
from troth_client.state.round_state import RoundState
from troth_client.steps.verified import take_up
from troth_client.transport.parallel import Source
from troth_coordinator.chain.agreement import check_roots
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.progress import has_dispersed
from troth_coordinator.rules.view import NetworkView

MOST_MISSED = 3
"""So many checkpoints in a row may be replaced by newer ones before they are fetched."""


Loaded = tuple[Weights, PieceList]
"""Weights by name, and their pieces, whose root is the one that the chain names."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Brings the replica to a state that the chain names, with the bytes of others."""

    chain: RunChain
    submissions: Submissions

    @property
    def state(self) -> RoundState:
        """The replica that is moved."""
        return self.submissions.state

    async def newest(self, view: NetworkView) -> None:
        """Bring the replica to the newest checkpoint of the run; genesis where there is none.

        Fetches for as long as it takes, and begins again with a newer checkpoint when nobody
        serves this one any more. Raises TooSlowError after `MOST_MISSED` such checkpoints,
        LaggingError once the run has dispersed, DisputedError, StoppedError, DiskFullError, and
        CheckpointFileError where the disk returns other bytes than were written.
        """
        num_missed = 0
        while True:
            wanted = newest_state(view.run)
            self._check_dispute()
            await check_roots(self.chain.client, self.chain.at.run, wanted.round)
            try:
                remember = {"round log": partial(self._remember, wanted.round)}
                loaded = await run_beside(self.chain, self._checkpoint(wanted), remember)
            except FolderInUseError:  # it is being made here, from our own weights
                view = await self.chain.watch.next()
                continue
            except CheckpointGoneError as error:
                view, num_missed = await self.chain.look(), num_missed + 1
                self._check_hope(view, error, num_missed)
                continue
            await self._adopt(view, *loaded)
            return

    async def heal(self, view: NetworkView, round_: int, weights: Weights) -> None:
        """HEALING: fetch the pieces of a round's canonical weights that are not in `weights`.

        `weights` are ours of that round, and are changed. Raises LaggingError when nobody serves
        the pieces any more, DisputedError, StoppedError.
        """
        self._check_dispute()
        wanted, events = await self._canonical(view, round_), self.chain.events
        events.emit("healing", round=round_, root=wanted.root.hex())
        source = self._source(lambda: not self._is_shown(round_))
        try:
            pieces = await fetch_list(source, wanted, trainable_shapes(self.state.config.model))
            different = await self.state.runtime.compute(_different, weights, pieces)
            num_bytes = await fetch_pieces(source, pieces, different, partial(_patch, weights))
            healed = await self._checked(weights, wanted)
        except CheckpointGoneError as error:
            self._check_stop()
            raise _unhealed(round_, str(error)) from error
        await self._adopt(view, weights, healed)
        events.emit(
            "healed",
            round=round_,
            root=wanted.root.hex(),
            tensors=sorted({piece.tensor for piece in different}),
            fetched_bytes=num_bytes,
        )

    async def _canonical(self, view: NetworkView, round_: int) -> CommittedState:
        """Return the canonical state of a round. Raises LaggingError if the chain names none."""
        if round_ == view.run.root_round:
            return newest_state(view.run)
        account = await self.chain.read_closed(view, round_)
        if account.canonical_root == ZERO_DIGEST:
            raise _unhealed(round_, "a void round")
        return round_state(view.run, account)

    async def _checkpoint(self, wanted: CommittedState) -> Loaded:
        """Return a checkpoint, checked: ours, genesis that is drawn, or that of others."""
        state = self.state
        if wanted.round == 0 and not state.config.has_given_start:
            weights = initial_weights(wanted.run, state.config.model)
            return weights, await self._checked(weights, wanted)
        folder = state.states.checkpoint(wanted.round)
        if folder is not None and folder.pieces.root == wanted.root:
            loaded = await state.runtime.compute(_read, folder, wanted)
            if loaded is not None:
                return loaded
            state.events.emit("file_damaged", reason=f"{folder.path} has other bytes by now")
        folder = await self._fetched(wanted)
        loaded = await state.runtime.compute(_read, folder, wanted)
        if loaded is None:
            raise CheckpointFileError(
                f"{folder.path} with the bytes that were just written",
                "other bytes",
                "Check this machine's disk and memory.",
            )
        return loaded

    async def _checked(self, weights: Weights, wanted: CommittedState) -> PieceList:
        pieces = await self.state.runtime.compute(pieces_of, weights, wanted.state)
        wanted.check(pieces)
        return pieces

    async def _fetched(self, wanted: CommittedState) -> CheckpointFolder:
        state, source = self.state, self._source(lambda: self._is_vain(wanted))
        self.chain.events.emit(
            "restoring",
            round=wanted.round,
            root=wanted.root.hex(),
            from_round=state.replica.round,  # the rounds from here to there are not replayed
        )
        pieces = await fetch_list(source, wanted, trainable_shapes(state.config.model))
        with Draft(state.states.path(wanted.round), pieces) as draft:
            num_bytes = await fetch_draft(source, draft)
            folder = await state.runtime.compute(draft.finish, self.manifest_of(pieces))
        state.states.show_checkpoint(folder)
        self.chain.events.emit("fetched", round=wanted.round, fetched_bytes=num_bytes)
        return folder

    def manifest_of(self, pieces: PieceList) -> CheckpointManifest:
        """Return the manifest of a state of this run."""
        at = self.chain.at
        return CheckpointManifest.of(str(at.program), str(at.run), self.state.config, pieces)

    async def _adopt(self, view: NetworkView, weights: Weights, pieces: PieceList) -> None:
        """Make checked weights those of the replica, and save them."""
        state = self.state
        await state.runtime.compute(take_up, state, view, weights, pieces)
        state.store.drop_after(pieces.state.round)
        await state.runtime.compute(state.save_weights)

    def _source(self, is_vain: Callable[[], bool]) -> Source:
        chain, submissions = self.chain, self.submissions

        async def holders() -> list[str]:
            self._check_stop()  # between two pieces: while they arrive, nobody asks `gives_up`
            return await submissions.endpoints(chain.watch.latest, chain.index)

        def gives_up() -> bool:
            return self.state.stop.is_set() or is_vain()

        return Source(submissions.transport, chain.runtime, chain.events, holders, gives_up)

    def _is_vain(self, wanted: CommittedState) -> bool:
        """Whether another checkpoint is on chain by now, or nobody is left to ask.

        After a fork it may be one of the same round.
        """
        view = self.chain.watch.latest
        return newest_state(view.run).root != wanted.root or has_dispersed(view)

    def _is_shown(self, round_: int) -> bool:
        """Whether others still show the weights of a round; they show the last few."""
        return self.chain.watch.latest.run.round <= round_ + self.state.retention.shown

    def _check_dispute(self) -> None:
        file = self.state.store.dispute_file
        if file.exists():
            raise DisputedError(
                "weights that our own replay agrees with",
                f"a ROOT_DISPUTE on record in {file}",
                "Read it first: the majority voted for weights that replay contradicts. To take "
                "weights of others all the same, move that file away.",
            )

    def _check_hope(self, view: NetworkView, error: CheckpointGoneError, num_missed: int) -> None:
        self._check_stop()
        if has_dispersed(view):
            raise LaggingError(error.expected, error.found, f"LAGGING: {error.next_step}")
        if num_missed >= MOST_MISSED:
            raise TooSlowError(
                "the weights of a checkpoint before the next one",
                f"{num_missed} checkpoints that were replaced meanwhile; the last: {error.found}",
                "LAGGING: check the connection of this machine, then start again.",
            )

    def _check_stop(self) -> None:
        if self.state.stop.is_set():
            raise StoppedError(self.state.replica.round, [])

    async def _remember(self, first: int) -> None:
        """Keep the rounds from `first` on in the log: a fetch is long, and the ring moves on."""
        chain = self.chain
        await chain.log.follow(chain.read_rounds, chain.watch.latest, first)


def _read(folder: CheckpointFolder, wanted: CommittedState) -> Loaded | None:
    """Return what a folder holds; None if it is not the state."""
    try:
        weights = folder.weights()
    except CheckpointFileError:
        return None
    pieces = pieces_of(weights, wanted.state)
    return (weights, pieces) if pieces.root == wanted.root else None


def _different(weights: Weights, wanted: PieceList) -> list[Piece]:
    """Return the wanted pieces that are not the ones of these weights."""
    own = pieces_of(weights, wanted.state)
    return [
        piece
        for piece, found in zip(wanted.pieces(), own.pieces(), strict=True)
        if piece.hash != found.hash
    ]


def _patch(weights: Weights, piece: Piece, data: bytes) -> None:
    flat = weights[piece.tensor].reshape(-1).view(np.uint8)
    flat[piece.offset : piece.offset + piece.num_bytes] = np.frombuffer(data, np.uint8)


def _unhealed(round_: int, found: str) -> LaggingError:
    return LaggingError(
        f"the pieces of round {round_}", found, "LAGGING: load the newest checkpoint."
    )
