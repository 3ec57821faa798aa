"""What was asked of an audit, as it is kept with its results.

Owns: its fields and their JSON form. Never: decides where a replay may begin.
Next: `saved.py`, which holds one.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from troth_coordinator.rules.ids import NONE

Count = Annotated[int, Field(ge=0, lt=2**64)]


class Order(BaseModel):
    """What was asked for: an audit that is asked otherwise does not go on from here.

    Rounds from `start` on and below `end`; `num_drawn` payloads, drawn by `draw_key`, are computed
    again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str
    start: Count = 0
    end: Count = NONE
    num_drawn: Count = 0
    draw_key: str = ""

    def is_of(self, other: "Order") -> bool:
        """Whether an audit of `other` may go on from this one; where it has no key, any will do."""
        key = other.draw_key or self.draw_key
        return self == other.model_copy(update={"draw_key": key})
