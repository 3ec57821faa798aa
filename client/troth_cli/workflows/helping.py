"""A helping rank as a process of its own: `python -m troth_cli.workflows.helping TOLD`.

Owns: what rank 0 tells it, in one argument, and how its errors are shown.
Never: reads an option or a file of the user's: rank 0 has, and some can be read only once.
Next: `helpers.py`, which starts it; `ranks.py` for its life.
"""

import dataclasses
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from troth_cli import failures, interrupts
from troth_cli.view.output import Output
from troth_cli.workflows.join_request import JoinRequest
from troth_cli.workflows.ranks import Training, help_rank_zero
from troth_client.telemetry.library_logs import keep_libraries_quiet
from troth_client.train.place import Place


@dataclass(frozen=True, slots=True)
class Told:
    """How a rank computes, and where it meets rank 0; `run` is for lists of processes only."""

    run: str
    rank: int
    size: int
    folder: str
    device: str
    num_threads: int | None
    compiles: bool
    microbatch_sequences: int | None
    precision: str
    is_json: bool
    is_debug: bool

    @classmethod
    def of(cls, request: JoinRequest, place: Place, output: Output) -> Self:
        """Return what a rank of this participant has to know; its place has a folder."""
        settings = request.settings
        return cls(
            settings.run,
            place.rank,
            place.size,
            str(place.folder),
            settings.device,
            settings.num_threads,
            settings.compiles,
            settings.microbatch_sequences,
            settings.precision,
            output.is_json,
            output.is_debug,
        )

    def to_text(self) -> str:
        """As the argument of the process."""
        return json.dumps(dataclasses.asdict(self))


def main(text: str) -> int:
    """Compute for rank 0 until it ends; return the exit code."""
    interrupts.end_at_once()  # until the ranks have met; then rank 0 says when to end
    keep_libraries_quiet(sys.stderr)
    told = Told(**json.loads(text))
    place = Place(told.rank, told.size, told.rank, folder=Path(told.folder))
    training = Training(told.compiles, told.microbatch_sequences, told.precision)
    output = Output(is_json=told.is_json, is_debug=told.is_debug)
    try:
        help_rank_zero(place, training, told.device, told.num_threads, output)
    except Exception as error:  # as in `main.py`: a user never sees a raw traceback
        failures.report(error, sys.stderr, is_json=told.is_json, is_debug=told.is_debug)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
