"""Sends under way: what each is for, how long it takes, and whether it is still worth landing.

Owns: the events `send_waiting` and `send_late`, the end of a send's use, and how much of its time
is left.
Never: signs, repeats or polls; `troth_coordinator/chain/sender.py` does. Next: `chain.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from solders.instruction import Instruction

from troth_client.network.watch import is_power_of_two
from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.attempts import SendState
from troth_coordinator.chain.codec import DISCRIMINATOR_BYTES, program_codec
from troth_coordinator.chain.priority import FULL_WINDOW
from troth_coordinator.rules.phase import end_by_time
from troth_coordinator.rules.view import NetworkView

Left = Callable[[NetworkView], int]
"""Thousandths of the time in which a send must land that a view shows as left."""


@dataclass(slots=True)
class Due:
    """Whether a send is of use; its owner says when the moment has passed.

    left: how much of its time is left; None for a send that may land at any time.
    """

    is_due: bool = True
    left: Left | None = None


@dataclass(slots=True)
class Follower:
    """Follows one send: reports when it has to be repeated, and when it lands after all."""

    events: EventSink
    instructions: Sequence[Instruction]
    due: Due = field(default_factory=Due)
    view: Callable[[], NetworkView] | None = None
    last: SendState | None = None
    wants_record: bool = field(default=False, init=False)

    @property
    def is_due(self) -> bool:
        """Whether the send is of use."""
        return self.due.is_due

    @property
    def window_left(self) -> int | None:
        """Thousandths of its time that are left at the newest view."""
        if self.due.left is None or self.view is None:
            return None
        return self.due.left(self.view())

    def may_sign(self) -> bool:
        """Let it be signed anew: the program takes what a participant sends once."""
        return True

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


def phase_left(view: NetworkView) -> int:
    """Return the thousandths of the present phase that are left, as far as a view shows."""
    run = view.run
    end = end_by_time(run.phase_start_slot, run.phase_end_slot, run.quorum_slot)
    return share_left(end - view.slot, end - run.phase_start_slot)


def share_left(slots: int, window_slots: int) -> int:
    """Return the slots that are left as thousandths of a window, 0 to 1000."""
    return max(0, min(FULL_WINDOW, FULL_WINDOW * slots // max(1, window_slots)))


def purpose(instructions: Sequence[Instruction]) -> str:
    """Return the names of our instructions, joined by a plus."""
    names = program_codec().instruction_names
    found = [names.get(bytes(one.data)[:DISCRIMINATOR_BYTES], "other") for one in instructions]
    return "+".join(found)
