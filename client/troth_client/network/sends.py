"""Sends under way: what each is for, how long it takes, and whether it is still worth landing.

Owns: the events `send_waiting` and `send_late`, and the end of a send's use.
Never: signs, repeats or polls; `troth_coordinator/chain/sender.py` does. Next: `chain.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from solders.instruction import Instruction

from troth_client.network.watch import is_power_of_two
from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES, program_codec
from troth_coordinator.chain.sender import SendState


@dataclass(slots=True)
class Due:
    """Whether a send is of use; its owner says when the moment has passed."""

    is_due: bool = True


@dataclass(slots=True)
class Follower:
    """Follows one send: reports when it has to be repeated, and when it lands after all."""

    events: EventSink
    instructions: Sequence[Instruction]
    due: Due = field(default_factory=Due)
    last: SendState | None = None

    @property
    def is_due(self) -> bool:
        """Whether the send is of use."""
        return self.due.is_due

    def waiting(self, state: SendState) -> None:
        """Report a send that is not confirmed yet; the log gets it at 1, 2, 4, 8, ... tries."""
        before, self.last = self.last, state
        is_news = before is None or state.num_tries > before.num_tries
        if is_news and is_power_of_two(state.num_tries):
            self.events.emit(
                "send_waiting",
                what=purpose(self.instructions),
                seconds=state.seconds,
                tries=state.num_tries,
                blockhashes=state.num_blockhashes,
                reason=state.reason,
            )

    def landed(self) -> None:
        """Report the landing of a send of which somebody was told that it waits."""
        if self.last is not None:
            self.events.emit(
                "send_late", what=purpose(self.instructions), seconds=self.last.seconds
            )


def purpose(instructions: Sequence[Instruction]) -> str:
    """Return the names of our instructions, joined by a plus."""
    names = program_codec().instruction_names
    found = [names.get(bytes(one.data)[:DISCRIMINATOR_BYTES], "other") for one in instructions]
    return "+".join(found)
