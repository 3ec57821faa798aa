"""Where a sequence lies: which shard of its split, and which row of it.

Owns: that arithmetic. Never: opens a file.
Next: `shards.py` for whole shards in a folder, `pieces.py` for pieces by their hash.
"""

from bisect import bisect_right
from itertools import accumulate

from troth_client.data.errors import SequenceIdError
from troth_client.data.manifest import Manifest, Split


class Places:
    """The rows of one split, which lie end to end in its shards."""

    def __init__(self, manifest: Manifest, split: Split) -> None:
        rows = (shard.tokens // manifest.row_tokens for shard in manifest.shards(split))
        self._split = split
        self._starts = [0, *accumulate(rows)]

    def __len__(self) -> int:
        """Return the number of sequences."""
        return self._starts[-1]

    def find(self, sequence: int) -> tuple[int, int]:
        """Return the shard and its row. Raises SequenceIdError."""
        if not 0 <= sequence < len(self):
            raise SequenceIdError(
                f"a {self._split} sequence in 0..{len(self) - 1}",
                str(sequence),
                "The plan and the data folder belong to different data sets.",
            )
        shard = bisect_right(self._starts, sequence) - 1
        return shard, sequence - self._starts[shard]
