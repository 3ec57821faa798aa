"""The order of an audit, as it is kept with its results.

Owns: its fields and their JSON form. Never: decides where a replay may begin.
Next: `saved.py`, which holds one.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from troth_coordinator.rules.ids import NONE

Count = Annotated[int, Field(ge=0, lt=2**64)]


class Order(BaseModel):
    """A span of rounds, and how many payloads are computed again.

    The replay begins at round `start`, and leaves out those from `end` on. `num_drawn` payloads are
    drawn by `draw_key`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: Count = 0
    end: Count = NONE
    num_drawn: Count = 0
    draw_key: str = ""

    def goes_on_from(self, kept: "Order") -> bool:
        """Whether what an audit of `kept` has done is part of this one.

        An order without a key accepts a kept one with any key, and then draws with that key.
        """
        if not self.num_drawn:
            return (kept.start, kept.num_drawn) == (self.start, 0)
        key = self.draw_key or kept.draw_key
        return kept == self.model_copy(update={"draw_key": key})
