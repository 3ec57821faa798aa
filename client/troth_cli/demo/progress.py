"""Notice a demo that makes no progress any more.

Owns: when to give up. Never: ends a process; `runner.py` does.
Next: `errors.py` for the errors that it raises.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from troth_cli.demo.errors import NoProgressError, TrainerFailedError
from troth_client.telemetry.board import Board
from troth_coordinator.rules.lateness import VOID_ROUNDS_TO_HALT
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.phase import Phase

MIN_PATIENCE_SECONDS = 60.0
START_SECONDS = 300.0
"""From a slow disk PyTorch and its CUDA libraries may take minutes to load, before any event."""


def patience_seconds(params: ParamsView, slot_milliseconds: int) -> float:
    """Return the longest time in which a healthy run closes no round, with room for a busy machine.

    The longest is a halt: three rounds that run to their deadlines, the halt, a Warmup.
    """
    round_slots = params.commit_slots + params.attest_slots + params.close_grace_slots
    slots = VOID_ROUNDS_TO_HALT * round_slots + params.halt_slots + params.warmup_slots
    return max(MIN_PATIENCE_SECONDS, slots * slot_milliseconds / 1_000)


def ending_seconds(params: ParamsView, slot_milliseconds: int) -> float:
    """Return as much for a finished run, whose audits go on: at least their longest window."""
    slots = max(
        params.case_slots,
        params.openings_slots,
        params.verdict_commit_slots,
        params.verdict_reveal_slots,
        params.jury_commit_slots,
        params.jury_reveal_slots,
        params.appeal_slots,
        params.breaker_slots,
    )
    of_rounds = patience_seconds(params, slot_milliseconds)
    return max(of_rounds, slots * slot_milliseconds / 1_000)


@dataclass(slots=True)
class Watch:
    """Watches the progress of the trainers; `now` is a stopwatch in seconds."""

    folder: Path
    patience_seconds: float
    ending_seconds: float
    now: Callable[[], float] = time.monotonic
    _seen: object = None
    _since: float = field(default=0.0)

    def check(self, board: Board, exit_codes: Mapping[str, int | None]) -> None:
        """Raise TrainerFailedError or NoProgressError where the demo cannot succeed any more.

        `exit_codes`: of the trainers that should live, None while they run.
        """
        for name, code in exit_codes.items():
            if code:
                raise self._failed(board, name, code)
        num_ended = sum(code is not None for code in exit_codes.values())
        audits = tuple((line.stage, line.step) for line in board.audits.values())
        progress = (board.round, audits, num_ended, len(board.participants))
        if progress != self._seen:
            self._seen, self._since = progress, self.now()
        waited = self.now() - self._since
        if waited > self._patience(board):
            raise self._stuck(board, waited)

    def _patience(self, board: Board) -> float:
        if not board.participants:
            return max(START_SECONDS, self.patience_seconds)
        is_finished = board.phase == Phase.FINISHED.name
        return self.ending_seconds if is_finished else self.patience_seconds

    def _failed(self, board: Board, name: str, code: int) -> TrainerFailedError:
        line = board.participants.get(name)
        reason = line.failure if line is not None and line.failure else "no reason in its event log"
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return TrainerFailedError(
            "every trainer to take part until the run ends",
            f"it ended in round {board.round} with {how}: {reason}",
            f"Read {self.folder / name}: events.jsonl, and output.txt for what it printed.",
            subject=name,
        )

    def _stuck(self, board: Board, waited: float) -> NoProgressError:
        states = ", ".join(
            f"{name} {line.state}" for name, line in sorted(board.participants.items())
        )
        goes_on = "a round to close, or an audit to go on,"
        what = goes_on if board.participants else "a participant to start"
        return NoProgressError(
            f"{what} within {self._patience(board):.0f} s",
            f"none for {waited:.0f} s in {board.phase.lower()} of round {board.round} ({states})",
            f"Read the event logs in {self.folder}; on a busy machine try --slot-ms 400.",
        )
