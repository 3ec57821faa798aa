"""A gradient by several ranks: rank 0 takes part in the run, the others only compute for it.

Owns: both sides of the exchange. Each rank sums its share of the sequences; rank 0 adds the sums up
and clips once. Never: a key, a chain, a store or a judgement outside rank 0.
Next: `ranks.py` for the exchange itself; `docs/decisions/` for why weights are sent.

Rank 0 sends its weights with every gradient. So the others have the same bits whatever moved them:
a payload, a rewind, a healed tensor, a checkpoint. Where a rank is lost, rank 0 computes the whole
batch itself, and goes on alone. Where a rank has no memory or sums that are not finite, it does so
for this gradient.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import torch
from numpy import int64
from numpy.typing import NDArray
from torch import Tensor

from troth_client.model.device import Device
from troth_client.model.llama import Llama
from troth_client.model.weights import weight_views
from troth_client.runtime.memory import as_memory_error, first_line
from troth_client.train.compiled import CompiledPass
from troth_client.train.errors import NonFiniteGradientError, RanksError
from troth_client.train.learner import OneDevice
from troth_client.train.passes import Sums
from troth_client.train.place import Place
from troth_client.train.ranks import END, Ranks
from troth_client.train.step import Gradient, as_tokens, clipped, micro_nats, norm_of, summed
from troth_coordinator.rules.config import RunConfig, TrainSection

PREPARE: Final = 1
GRADIENT: Final = 2

DONE: Final = 0
NO_MEMORY: Final = 1
NOT_FINITE: Final = 2
_REASONS: Final = {NO_MEMORY: "memory does not suffice", NOT_FINITE: "its sums are not finite"}
"""The words of a rank on its own share."""

LOST: Final = "ranks_lost"
FAILED: Final = "rank_failed"
Report = Callable[[str, str], None]
"""Gets an event and the reason: all ranks are lost, or some failed in one gradient."""

START_SECONDS: Final = 300.0
"""How long rank 0 waits until the others are there; then, until they have built the model."""
MEMBER_START_SECONDS: Final = 60.0
"""The same for a member that comes back: it misses openings meanwhile, and can go on alone."""
MEET_SECONDS: Final = 20.0
"""How long rank 0 waits for ranks that have said that they are ready to meet."""
PATIENCE_SECONDS: Final = 60.0
"""How long rank 0 waits for the others in one exchange, where no run bounds it."""
LEAST_PATIENCE_SECONDS: Final = 1.0
"""Less would take a busy machine for one that hangs."""
PATIENCE_SHARE: Final = 0.25
"""Rank 0 waits for that part of the Commit phase.

It has its share behind it then, and computes the whole batch afterwards. Where that takes half of
the phase at most, a rank that hangs costs no round.
"""
PREPARE_SECONDS: Final = 1800.0
"""How long rank 0 waits until the others have compiled."""
MEMBER_PREPARE_SECONDS: Final = 300.0
"""The same for a member that comes back. It has compiled as much as they by then, or more."""
FOREVER_SECONDS: Final = 10.0 * 365 * 24 * 3600
"""For the others: rounds may be far apart, and a rank 0 that dies closes its connections."""


def patience_of(commit_seconds: float) -> float:
    """Return how long rank 0 waits in one exchange, in a run with such a Commit phase."""
    return max(LEAST_PATIENCE_SECONDS, PATIENCE_SHARE * commit_seconds)


def start_seconds(*, is_member: bool) -> float:
    """Return how long rank 0 waits until the others have started."""
    return MEMBER_START_SECONDS if is_member else START_SECONDS


def meet(place: Place, patience_seconds: float = PATIENCE_SECONDS) -> Ranks:
    """Connect the ranks; rank 0 waits for the others with bounds, they for it without.

    Ranks that rank 0 has started are ready by then; nobody knows when torchrun's will be.
    Raises RanksError.
    """
    if place.rank:
        return Ranks.connect(place, FOREVER_SECONDS, FOREVER_SECONDS)
    seconds = START_SECONDS if place.folder is None else MEET_SECONDS
    return Ranks.connect(place, seconds, patience_seconds)


@dataclass(frozen=True, slots=True)
class Team:
    """The ranks of a participant before they have met: how many, and the call that connects them.

    `meet` waits for the others, and raises RanksError. `end_others` ends those that we started:
    `meet` fails then within MEET_SECONDS, and an exchange at once.
    """

    size: int
    meet: Callable[[], Ranks]
    end_others: Callable[[], None] = lambda: None
    _ended: threading.Event = field(default_factory=threading.Event, init=False)

    def end(self) -> None:
        """End the others because we end: their loss is no news, and nobody goes on alone."""
        self._ended.set()
        self.end_others()

    @property
    def is_ended(self) -> bool:
        """Whether we ended it."""
        return self._ended.is_set()


class Leader:
    """The learner of rank 0. A member has a stake, and goes on alone whatever the others do."""

    def __init__(self, alone: OneDevice, team: Team, report: Report, *, is_member: bool) -> None:
        self._alone = alone
        self._team = team
        self._ranks: Ranks | None = None
        self._report = report
        self._is_member = is_member

    def prepare(self, model: Llama, config: RunConfig, device: Device) -> None:
        """Meet the others, tell them what they will compute, and get ready as they do.

        Raises RanksError to a newcomer, which has deposited nothing yet.
        """
        with self._losing(goes_on=self._is_member):
            self._ranks = self._team.meet()
            self._prepare_with(self._ranks, model, config, device)
        if self._ranks is None:
            self._alone.prepare(model, config, device)

    def gradient(
        self, model: Llama, batch: NDArray[int64], train: TrainSection, device: Device
    ) -> Gradient:
        """Return the clipped gradient of a batch, int64 [sequences, T + 1], as `Learner` says.

        Computes with the others; alone where one is lost or fails. Its tensors are fp32, on the
        model's device. Raises BatchShapeError, NonFiniteGradientError, and MemoryError where ours
        does not suffice.
        """
        found: Sums | MemoryError | None = None
        if self._ranks is not None:
            tokens = as_tokens(model, batch, device)
            with self._losing():
                found = self._together(self._ranks, model, tokens, train, device)
        if isinstance(found, MemoryError):
            raise found
        if found is None:
            return self._alone.gradient(model, batch, train, device)
        return clipped(model, found, train.clip_micro)

    def _prepare_with(self, ranks: Ranks, model: Llama, config: RunConfig, device: Device) -> None:
        """Get ready for our share, and for the whole batch: we may have to go on alone."""
        text = config.model_dump_json().encode()
        ranks.order((PREPARE, len(text), 0))
        ranks.share(torch.frombuffer(bytearray(text), dtype=torch.uint8))
        words = ranks.told(DONE, start_seconds(is_member=self._is_member))
        if any(words):
            raise too_small(explained(words))
        share_weights(ranks, model)
        whole = config.train.sequences_per_payload
        self._alone.prepare_for([len(own_part(ranks, whole)), whole], model, config, device)
        ranks.told(DONE, self._compile_seconds())

    def _compile_seconds(self) -> float | None:
        """Return how long the others may compile; None, as in any exchange, if nobody does."""
        if not isinstance(self._alone.one_pass, CompiledPass):
            return None
        return MEMBER_PREPARE_SECONDS if self._is_member else PREPARE_SECONDS

    def _together(
        self, ranks: Ranks, model: Llama, tokens: Tensor, train: TrainSection, device: Device
    ) -> Sums | MemoryError | None:
        """Return the sums of the batch; None where a rank failed and the others did not.

        A MemoryError of our own share is returned: the others know of it, and are in step.
        """
        ranks.order((GRADIENT, tokens.shape[0], tokens.shape[1]))
        ranks.share(tokens)
        share_weights(ranks, model)
        found = share_of(self._alone, ranks, model, (tokens, train), device)
        words = ranks.told(word_of(found))
        if isinstance(found, MemoryError):
            return found
        if isinstance(found, NonFiniteGradientError) or any(words):
            self._report(FAILED, explained(words))
            return None
        return added_up(ranks, found)

    @contextlib.contextmanager
    def _losing(self, *, goes_on: bool = True) -> Iterator[None]:
        """Lose the others where an exchange fails, as they are out of step then.

        An error that is not about them or about memory is raised all the same, and any error once
        we have ended the team.
        """
        try:
            with as_memory_error():
                yield
        except BaseException as error:
            if self._ranks is not None:
                self._ranks.cut()
                self._ranks = None
            if not goes_on or self._team.is_ended:
                raise
            self._report(LOST, str(error) or type(error).__name__)
            if not isinstance(error, RanksError | MemoryError):
                raise


def help_leader(ranks: Ranks, alone: OneDevice, device: Device) -> None:
    """Compute for rank 0 until it says that the end has come.

    Raises RanksLostError where it ends without a word, RanksError where memory does not suffice.
    """
    try:
        with as_memory_error():
            _follow(ranks, alone, device)
    except MemoryError as error:
        raise too_small(first_line(error)) from error


def _follow(ranks: Ranks, alone: OneDevice, device: Device) -> None:
    config, model = RunConfig(), None
    while True:
        order, first, second = ranks.order()
        if order == END:
            return
        if order == PREPARE:
            text = torch.empty(first, dtype=torch.uint8)
            ranks.share(text)
            config = RunConfig.model_validate_json(bytes(text.tolist()))
            model = _ready(ranks, alone, config, device)
        elif model is not None:
            tokens = torch.empty((first, second), dtype=torch.int64, device=device.torch)
            _help(ranks, alone, model, (tokens, config.train), device)


def _ready(ranks: Ranks, alone: OneDevice, config: RunConfig, device: Device) -> Llama:
    """Return a model with the weights of rank 0, once it knows that there is memory for one."""
    try:
        with as_memory_error():
            model = Llama(config.model).to(device.torch)
    except MemoryError:
        ranks.told(NO_MEMORY)
        raise
    ranks.told(DONE)
    share_weights(ranks, model)  # before it compiles: zeros cannot be compared
    own = own_part(ranks, config.train.sequences_per_payload)
    alone.prepare_for([len(own)], model, config, device)
    ranks.told(DONE)
    return model


def _help(
    ranks: Ranks,
    alone: OneDevice,
    model: Llama,
    work: tuple[Tensor, TrainSection],
    device: Device,
) -> None:
    tokens, _ = work
    ranks.share(tokens)
    share_weights(ranks, model)
    found = share_of(alone, ranks, model, work, device)
    words = ranks.told(word_of(found))
    if isinstance(found, Sums) and not any(words):
        added_up(ranks, found)


def share_weights(ranks: Ranks, model: Llama) -> None:
    """Give the weights of rank 0 to all others."""
    for weight in weight_views(model).values():
        ranks.share(weight)


def own_part(ranks: Ranks, num_sequences: int) -> range:
    """Return which sequences of a batch this rank computes."""
    first, last = (num_sequences * (ranks.rank + i) // ranks.size for i in (0, 1))
    return range(first, last)


def share_of(
    alone: OneDevice,
    ranks: Ranks,
    model: Llama,
    work: tuple[Tensor, TrainSection],
    device: Device,
) -> Sums | MemoryError | NonFiniteGradientError:
    """Return the sums of this rank's sequences, divided by the predictions of the whole batch.

    `work` is that batch, int64 tokens [sequences, T + 1] on the device, and its settings. The sums
    are fp32: a loss [], and gradients in the shapes of the weights. Errors are returned: the
    others wait for a word.
    """
    tokens, train = work
    part = own_part(ranks, len(tokens))
    own = tokens[part.start : part.stop]
    size = device.at_once(train.microbatch_sequences)
    parts = torch.split(own, size) if len(own) else ()
    try:
        with as_memory_error():
            found = summed(model, parts, tokens[:, 1:].numel(), device, alone.one_pass)
            norm_of(found.gradients)
            micro_nats(found.loss)
            return found
    except (MemoryError, NonFiniteGradientError) as error:
        return error


def word_of(found: Sums | MemoryError | NonFiniteGradientError) -> int:
    """Return what a rank says to the others about its share."""
    if isinstance(found, Sums):
        return DONE
    return NO_MEMORY if isinstance(found, MemoryError) else NOT_FINITE


def too_small(found: str) -> RanksError:
    """Return the error of a rank that has no memory for the model."""
    return RanksError(
        "memory for the model on every rank",
        found,
        "Take a smaller --micro-batch, fewer ranks, or a machine with more memory.",
    )


def explained(words: Sequence[int]) -> str:
    """Return which ranks failed, and why."""
    return ", ".join(f"rank {rank}: {_REASONS[one]}" for rank, one in enumerate(words) if one)


def added_up(ranks: Ranks, own: Sums) -> Sums:
    """Return the sums over all ranks, in rank 0; they take the place of its own."""
    for tensor in (*own.gradients, own.loss):
        ranks.add_up(tensor)
    return own
