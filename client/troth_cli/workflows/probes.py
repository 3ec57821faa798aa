"""Probes: what a run and its members say before anybody pays: slot time, rounds, weights.

Owns: the measurements over the network, each bounded in time and bytes.
Never: judges what was measured; `join_checks.py` and `doctor.py` do.
Next: `members.py`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from solders.pubkey import Pubkey

from troth_attestation.committed import newest_state
from troth_attestation.pieces import Piece, PieceList
from troth_cli.slot_time import STATED, SlotTime
from troth_cli.workflows.members import Members
from troth_client.checkpoint.fetch import fetch_list
from troth_client.model.shapes import trainable_shapes
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.errors import TransportError
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.rpc import Rpc
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.view import NetworkView

LEAST_SLOTS: Final = 8
"""Slots are counted until so many have passed."""
MOST_SECONDS: Final = 5.0
"""But for no longer than this."""
POLL_SECONDS: Final = 0.2
"""Between two looks at the slot: few enough for a node that counts requests."""
WEIGHTS_SECONDS: Final = 5.0
"""How long members are asked for the weights before they count as silent."""
RECENT_ROUNDS: Final = 16
"""The length of a round is the average of so many."""
SLOW_BYTES_PER_SECOND: Final = 256 * 1024
"""A holder that sends fewer is slow."""

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class WeightsProbe:
    """The newest checkpoint of a run, and the speed at which one piece of it came.

    `num_bytes` is 0 where the weights are here: everybody computes those that are drawn.
    """

    round: int
    num_bytes: int
    bytes_per_second: float


async def measure_slots(
    rpc: Rpc, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep
) -> SlotTime:
    """Watch the slots for some seconds at most and return their length.

    Counts from the first change of the slot to the last, so that no part of a slot is in it.
    """
    began, first = clock(), await rpc.get_slot()
    changes: list[tuple[float, int]] = []
    while clock() - began < MOST_SECONDS:
        slot = await rpc.get_slot()
        if slot > (changes[-1][1] if changes else first):
            changes.append((clock(), slot))
        if changes and changes[-1][1] - changes[0][1] >= LEAST_SLOTS:
            break
        await sleep(POLL_SECONDS)
    if len(changes) < 2:
        return STATED
    (start, low), (end, high) = changes[0], changes[-1]
    return SlotTime(max(1, round((end - start) * 1e6 / (high - low))), is_measured=True)


async def measure_round(client: CoordinatorClient, view: NetworkView) -> Fraction:
    """Return the slots of a round: of the last ones where there were some, else the windows."""
    params, now = view.run.params, view.round
    longest = Fraction(params.commit_slots + params.attest_slots)
    span = min(RECENT_ROUNDS, params.ring - 1, view.run.round)
    if now is None or span < 1:
        return longest
    (old,) = await client.read_rounds(Pubkey(view.run.address), [view.run.round - span])
    if old is None or old.open_slot >= now.open_slot:
        return longest
    return Fraction(now.open_slot - old.open_slot, span)


async def probe_weights(
    client: CoordinatorClient,
    view: NetworkView,
    config: RunConfig,
    others: Sequence[str] = (),
    *,
    allow_private: bool = False,
) -> WeightsProbe:
    """Ask the members, and others, for the newest checkpoint's list and one piece.

    Raises CheckpointGoneError where nobody has the list.
    """
    wanted = newest_state(view.run)
    if wanted.round == 0 and not config.has_given_start:
        return WeightsProbe(0, 0, 0.0)
    run = Pubkey(view.run.address)
    members = Members(client, run, WEIGHTS_SECONDS, others, allow_private=allow_private)
    members.ask_also(config.network.relays)
    async with await members.transport() as transport:
        source = members.source(transport, lambda _done, _total, _note: None)
        pieces = await fetch_list(source, wanted, trainable_shapes(config.model))
        holders, piece = await members.holders(), largest_piece(pieces)
        began = time.monotonic()
        try:
            await transport.fetch(_address(wanted.round, piece), holders, piece.num_bytes, bytes)
            rate = piece.num_bytes / max(time.monotonic() - began, 1e-6)
        except TransportError:
            rate = 0.0  # the list is there: the fetch itself tries for longer
    total = sum(tensor.num_bytes for tensor in pieces.tensors)
    return WeightsProbe(wanted.round, total, rate)


async def measure_holder(members: Members, holder: str, pieces: PieceList) -> float:
    """Return the bytes a second at which a member sends one piece. Raises TransportError."""
    piece = largest_piece(pieces)
    async with await members.transport() as transport:
        began = time.monotonic()
        await transport.fetch(_address(pieces.state.round, piece), [holder], piece.num_bytes, bytes)
        return piece.num_bytes / max(time.monotonic() - began, 1e-6)


def largest_piece(pieces: PieceList) -> Piece:
    """Return the first of the largest pieces: at most 1 MiB."""
    return max(pieces.pieces(), key=lambda piece: piece.num_bytes)


def _address(round_: int, piece: Piece) -> BlobId:
    return BlobId(round_, BlobKind.PIECE, piece.hash)
