"""New chain parameters from those on chain and what a user changes.

Owns: laying [chain] of the files and `--set` over the parameters in force.
Never: sends them.
Next: `troth_coordinator.rules.params_update.check_update`, which the program repeats.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from troth_cli.errors import SettingsError
from troth_cli.settings import run_sections
from troth_coordinator.rules.base import refuse_unknown_keys, validated
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.params_update import check_update
from troth_coordinator.rules.params_view import ParamsView
from troth_coordinator.rules.view import RunView


def changed_params(run: RunView, files: Iterable[Path], overrides: Sequence[str]) -> ParamsView:
    """Return the run's parameters with the changes under [chain].

    Raises ConfigError where the program would refuse them, and SettingsError without changes.
    """
    sections = run_sections(files, overrides)
    chain = sections.get("chain", {})
    changes = {k: v for k, v in chain.items() if k != "preset"} if isinstance(chain, dict) else {}
    if not changes:
        raise SettingsError(
            "at least one changed parameter",
            "none",
            "Name it with --set chain.KEY=VALUE or under [chain] in a config file.",
        )
    refuse_unknown_keys(ChainParams, changes, "chain")
    current = run.params
    values = ChainParams.from_view(current).model_dump() | changes
    wanted = validated(ChainParams, values, "chain").to_view()
    check_update(run.created, current, wanted)
    return wanted
