"""New chain parameters from those on chain and what a user changes.

Owns: laying [chain] of the files and `--set` over the parameters in force.
Never: sends them.
Next: `troth_coordinator.rules.params_checks.check_update`, which the program repeats.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from troth_cli.errors import SettingsError
from troth_cli.settings import run_sections
from troth_coordinator.rules.base import refuse_unknown_keys, validated
from troth_coordinator.rules.params import ChainParams
from troth_coordinator.rules.params_checks import check_update
from troth_coordinator.rules.params_view import ParamsView


def changed_params(
    current: ParamsView, files: Iterable[Path], overrides: Sequence[str]
) -> ParamsView:
    """Return `current` with the changes under [chain]; raises ConfigError, SettingsError."""
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
    values = ChainParams.from_view(current).model_dump() | changes
    wanted = validated(ChainParams, values, "chain").to_view()
    check_update(current, wanted)
    return wanted
