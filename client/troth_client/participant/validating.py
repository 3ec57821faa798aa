"""Validation beside the rounds: the loss on held-out text, every so many rounds.

Owns: when it is measured and on how many sequences. Never: delays a round: it reads the weights of
the round from disk, works in a thread while the others attest, and leaves out what comes too soon.
Nor does the number decide anything: it is telemetry.
Next: `train/evaluate.py` for the loss; `supervisor.py`, which starts this beside the rounds.
"""

from dataclasses import dataclass
from typing import Final, NoReturn

from troth_client.data.errors import DataError
from troth_client.member import Member
from troth_client.model.device import Device
from troth_client.model.weights import build
from troth_client.runtime.memory import first_line
from troth_client.state.round_state import Sequences
from troth_client.storage import Store
from troth_client.telemetry.events import EventSink
from troth_client.train.errors import TrainError
from troth_client.train.evaluate import evaluate
from troth_client.train.memory import give_back
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView

MOST_SEQUENCES: Final = 32
"""So many held-out sequences are measured, always the same ones."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Text to validate on: `data` of the split `validation`, every `every` rounds, on `device`."""

    data: Sequences
    every: int
    device: Device


async def validate(member: Member, held_out: HeldOut) -> NoReturn:
    """Measure the loss at each round that is due, for ever; failures are events."""
    validation, watch = _Validation(member, held_out), member.chain.watch
    while True:
        view = await watch.next()
        due = validation.due(view)
        if due is not None:
            await validation.measure(due)


class _Validation:
    """Remembers the last round that was measured or left out."""

    def __init__(self, member: Member, held_out: HeldOut) -> None:
        self._state = member.state
        self._watch = member.chain.watch
        self._held_out = held_out
        self._last: int | None = None
        self._is_off = False

    def due(self, view: NetworkView) -> int | None:
        """Return the round that is due, once this machine's own work of the open one is done."""
        now, every = view.run.round, self._held_out.every
        newest = now - now % every
        if self._last is None:  # the first look: what was due before we came is not ours
            self._last = newest - 1 if newest == now else newest
        # While others attest, our gradient is computed. Before that it would have to wait.
        is_calm = view.run.phase in (Phase.ATTEST, Phase.COOLDOWN, Phase.FINISHED)
        return newest if newest > self._last and is_calm and not self._is_off else None

    async def measure(self, round_: int) -> None:
        """Measure the loss of the weights that a round begins with."""
        state = self._state
        self._last = round_
        if round_ not in state.store.weight_rounds():
            self._skip(round_, "this machine is behind the run")
            return
        began = state.runtime.seconds()
        try:
            found = await state.runtime.compute(
                _measure, state.store, state.config, self._held_out, round_
            )
        except DataError as error:
            self._is_off = True
            self._skip(round_, f"no validation from now on: {error}")
            return
        except TrainError as error:
            self._skip(round_, str(error))
            return
        except MemoryError as error:
            give_back()
            self._skip(round_, f"out of memory: {first_line(error)}")
            return
        if found is not None:
            now = state.runtime.seconds()
            took = None if began is None or now is None else round(now - began, 3)
            loss, num_tokens = found
            self._events.emit(
                "validated", round=round_, loss_micro=loss, tokens=num_tokens, seconds=took
            )
        self._leave_out(round_)

    @property
    def _events(self) -> EventSink:
        return self._state.events

    def _leave_out(self, round_: int) -> None:
        """Leave the next round that is due out, if the run has passed it meanwhile."""
        due = round_ + self._held_out.every
        if self._watch.latest.run.round > due:
            self._last = due
            self._skip(due, "the last validation took longer than the rounds in between")

    def _skip(self, round_: int, reason: str) -> None:
        self._events.emit("validation_skipped", round=round_, reason=reason)


def _measure(
    store: Store, config: RunConfig, held_out: HeldOut, round_: int
) -> tuple[int, int] | None:
    """Return loss in micro-nats and number of tokens; None if the weights are gone. Slow."""
    saved = store.load_weights(round_)
    if saved is None:
        return None
    count = min(MOST_SEQUENCES, len(held_out.data))
    batch = held_out.data.sequences(range(count))
    model = build(config.model, saved.tensors, held_out.device.torch)
    size = config.train.microbatch_sequences
    return evaluate(model, batch, size, held_out.device), count * (batch.shape[1] - 1)
