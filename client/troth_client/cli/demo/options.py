"""What a demo can be asked for.

Owns: options, their defaults, the demo's run config. Never: reads a command line.
Next: `stage.py`.
"""

import time
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from troth_coordinator.config_files import load_config
from troth_coordinator.rules.settings import RunSettings


def _new_folder() -> Path:
    return Path("runs") / time.strftime("demo-%Y%m%d-%H%M%S")


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """A demo: how many trainers and rounds, how fast the slots, where its files go.

    `margin_micro` is how far the validation loss must fall, in micro-nats. `kill_round` ends one
    trainer with SIGKILL when that round is closed, to show that the others go on.
    """

    folder: Path = field(default_factory=_new_folder)
    num_trainers: int = 4
    num_rounds: int = 40
    slot_milliseconds: int = 100
    margin_micro: int = 1_500_000
    kill_round: int | None = None
    is_live: bool = True

    def settings(self) -> RunSettings:
        """Return the run's settings: the packaged demo config with these options on top."""
        decay = self.num_rounds * 7 // 10
        changes: dict[str, object] = {
            "schedule.rounds": self.num_rounds,
            "schedule.decay_from_round": decay,
            "schedule.warmup_rounds": min(5, decay),
            "chain.min_members": max(2, self.num_trainers),
        }
        return load_config([Path(str(files(__package__) / "demo.toml"))], changes)

    @property
    def events(self) -> Path:
        """The log of the demo itself."""
        return self.folder / "events.jsonl"

    def trainer_folder(self, index: int) -> Path:
        """Return the folder of one trainer."""
        return self.folder / f"trainer-{index}"
