"""The options of a demo.

Owns: options, their defaults, the demo's run config. Never: reads a command line.
Next: `setup.py`.
"""

import time
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from troth_cli.demo.errors import DemoOptionError, FolderUsedError
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.settings import RunSettings
from troth_coordinator.rules.view import Role
from troth_simulation.cheats.catalogue import CHEATS, FREE_RIDER, NOBODY

CONFIG = Path(str(files(__package__) / "demo.toml"))


def new_folder() -> Path:
    """Return a folder under `runs` that is named by the time."""
    return Path("runs") / time.strftime("demo-%Y%m%d-%H%M%S")


@dataclass(frozen=True, slots=True)
class ParticipantPlan:
    """One participant of a demo: name, role, and its cheat, if any."""

    name: str
    role: Role
    cheat: str = ""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """A demo: its participants, rounds, length of a slot, and where its files go.

    `num_trainers` train and witness, `num_witnesses` only witness; all of them are honest. One more
    trains, and cheats as `cheat` names it, unless that is `none`; it judges only to lie on juries.
    `margin_micro` is the drop that the validation loss needs, in micro-nats. `kill_round` ends one
    trainer with SIGKILL when that round is closed, to show that the others go on. `seed` fixes the
    run's address, hence its initial weights; None draws a new one. `config` is the run's file.
    Raises DemoOptionError.
    """

    folder: Path = field(default_factory=new_folder)
    num_trainers: int = 4
    num_witnesses: int = 1
    cheat: str = FREE_RIDER.name
    num_rounds: int = 40
    slot_milliseconds: int = 100
    margin_micro: int = 1_500_000
    kill_round: int | None = None
    seed: int | None = None
    is_live: bool = True
    config: Path = CONFIG

    def __post_init__(self) -> None:
        """Refuse options with which a demo waits for ever, or ends before the cheat is judged."""
        if self.num_trainers < 2:
            raise _refused("at least 2 trainers", f"{self.num_trainers}", "Ask for more")
        if self.num_witnesses < 0:
            raise _refused("no witness or some", f"{self.num_witnesses}", "Ask for more")
        if self.cheat not in (NOBODY, *CHEATS):
            known = ", ".join((NOBODY, *CHEATS))
            raise _refused(f"one of the cheats {known}", repr(self.cheat), "Choose one of these")
        if self.num_rounds < 1:
            raise _refused("at least 1 round", f"{self.num_rounds}", "Ask for more")
        if self.kill_round is None:
            return
        if self.num_trainers < 3:
            found = f"{self.num_trainers} trainers"
            raise _refused("3 trainers or more where one is killed", found, "Ask for one more")
        if not 0 <= self.kill_round < self.num_rounds - 1:
            expected = f"a round from 0 to {self.num_rounds - 2} to kill a trainer after"
            raise _refused(expected, f"{self.kill_round}", "Choose an earlier one")

    def settings(self) -> RunSettings:
        """Return the run's settings: its file with these options on top.

        The run waits for all honest participants. It must go on without one that is killed, and
        without the cheat after its slash.
        """
        decay = self.num_rounds * 7 // 10
        num_lost = 0 if self.kill_round is None else 1
        changes: dict[str, object] = {
            "schedule.rounds": self.num_rounds,
            "schedule.decay_from_round": decay,
            "schedule.warmup_rounds": min(5, decay),
            "chain.min_members": self.num_trainers + self.num_witnesses - num_lost,
        }
        return load_config([self.config], changes)

    def check_folder(self) -> None:
        """Raise FolderUsedError if there is something in the folder."""
        folder = self.folder
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            found = "a folder that is not empty" if folder.is_dir() else "a file"
            raise FolderUsedError(
                "a new or empty folder for the demo's files",
                found,
                "Remove it, or name another with --out.",
                subject=str(folder),
            )

    @property
    def plans(self) -> list[ParticipantPlan]:
        """Everybody who takes part: trainers, then witnesses, then the cheat."""
        both = Role.TRAINER | Role.WITNESS
        plans = [ParticipantPlan(f"trainer-{index}", both) for index in range(self.num_trainers)]
        plans += [
            ParticipantPlan(f"witness-{index}", Role.WITNESS) for index in range(self.num_witnesses)
        ]
        if self.cheat != NOBODY:
            plans.append(ParticipantPlan(self.cheat, CHEATS[self.cheat].role, self.cheat))
        return plans

    @property
    def names(self) -> list[str]:
        """The names of the honest, by number."""
        return [plan.name for plan in self.plans if not plan.cheat]

    @property
    def events(self) -> Path:
        """The log of the demo itself."""
        return self.folder / "events.jsonl"

    @property
    def archive(self) -> Path:
        """The archive of the run, for whoever audits it."""
        return self.folder / "archive"

    def participant_folder(self, name: str) -> Path:
        """Return the folder of one participant."""
        return self.folder / name

    def weights_folder(self, name: str) -> Path:
        """Return where a participant leaves the weights of a finished run."""
        return self.participant_folder(name) / "state" / "weights"


def _refused(expected: str, found: str, next_step: str) -> DemoOptionError:
    return DemoOptionError(expected, found, next_step, subject="demo")
