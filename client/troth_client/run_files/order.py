"""Which shards a participant needs, and which first: the order of the data decides it.

Owns: the way from positions of the order to shards. Never: reads data or asks anybody.
Next: `troth_coordinator/rules/assignment.py` for the order; `fetch.py`, which asks in this order.

Sequences are drawn over the whole data set. So a run that is long against its data soon needs every
shard. A run that ends before may never need some: those are not fetched.
"""

from bisect import bisect_right
from itertools import accumulate, chain
from typing import Final

from troth_client.data.manifest import Manifest, ShardEntry
from troth_coordinator.rules.assignment import SequenceOrder
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.view import RunView

MOST_DRAWS: Final = 2**20
"""Some seconds of work."""


def needed_shards(manifest: Manifest, view: RunView, config: RunConfig) -> list[ShardEntry]:
    """Return the shards of the sequences that are still to come, in the order of their first use.

    Those of rounds that may still be audited follow. Where so many draws have not met every shard,
    the others are needed as well. Slow for many shards: for a thread.
    """
    per_round = view.params.capacity * config.train.sequences_per_payload
    rounds_left = max(0, config.schedule.rounds - view.round)
    coming = range(view.cursor, view.cursor + (rounds_left + 1) * per_round)
    past = range(max(0, view.cursor - view.params.ring * per_round), view.cursor)
    rows = (shard.tokens // manifest.row_tokens for shard in manifest.train)
    ends = list(accumulate(rows))
    order = SequenceOrder(manifest.num_sequences, manifest.hash)
    found: dict[int, ShardEntry] = {}
    for num_drawn, position in enumerate(chain(coming, past)):
        if num_drawn == MOST_DRAWS:  # a creator may name a shard of one sequence in billions
            return [*found.values(), *(s for at, s in enumerate(manifest.train) if at not in found)]
        if len(found) == len(manifest.train):
            break
        at = bisect_right(ends, order.sequence(position))
        found.setdefault(at, manifest.train[at])
    return list(found.values())
