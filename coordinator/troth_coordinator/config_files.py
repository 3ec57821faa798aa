"""Run configurations on disk: TOML files laid over the defaults, flags on top.

Owns: reading TOML and parsing `section.key=value` flags.
Never: decides what a value means; `rules/settings.py` does.
Next: `rules/settings.py`.
"""

import tomllib
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from troth_coordinator.rules.errors import InvalidValueError
from troth_coordinator.rules.settings import (
    Plain,
    RunSettings,
    layer_in_integers,
    merge,
    settings_from,
)

_UNREADABLE: Final = (ValueError, RecursionError)
"""tomllib raises these, also for a number of thousands of digits, and for nesting without end."""


def load_config(
    paths: Iterable[str | Path] = (), overrides: Mapping[str, object] | None = None
) -> RunSettings:
    """Return the settings of: defaults < TOML files from left to right < overrides.

    `overrides` maps dotted keys ("schedule.rounds") to values; text is read as TOML where it is
    TOML, so that flags can be passed on as they were typed. Raises UnknownKeyError (with the
    nearest known key), InvalidValueError, ContradictionError.
    """
    layers: list[Mapping[str, object]] = [read_toml(Path(path)) for path in paths]
    layers += [override(key, value) for key, value in (overrides or {}).items()]
    return settings_from(merge(layers))


def read_toml(path: Path) -> Plain:
    """Return the values of one TOML file, quantities of the run as integers.

    Raises InvalidValueError if it cannot be read as TOML, and for quantities as `rules/units.py`
    says.
    """
    return layer_in_integers(_parsed(path))


def override(key: str, value: object) -> Plain:
    """Return the layer of one flag: a dotted key and its value, as text or as it is."""
    return layer_in_integers(_nested(key, parse_value(value)))


def _parsed(path: Path) -> Plain:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=_exact)
        repr(values)  # a message can show each of them: no number or nesting is without end
        return values
    except FileNotFoundError as error:
        raise InvalidValueError(
            str(path),
            "a TOML file",
            "no such file",
            "check the path; troth run init writes a config, troth run create the file of a run",
        ) from error
    except IsADirectoryError as error:
        raise InvalidValueError(
            str(path), "a TOML file", "a folder", "name the file in it"
        ) from error
    except _UNREADABLE as error:
        raise InvalidValueError(str(path), "valid TOML", error, "correct the file") from error


def _nested(dotted: str, value: object) -> Plain:
    """Return {"a": {"b": value}} for "a.b"."""
    head, _, rest = dotted.partition(".")
    return {head: _nested(rest, value)} if rest else {head: value}


def parse_value(value: object) -> object:
    """Return a flag's text as the TOML value it spells, else unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return tomllib.loads(f"value = {value}", parse_float=_exact)["value"]
    except _UNREADABLE:
        return value


def _exact(text: str) -> Decimal:
    """Return a number with all of its digits; NaN for an exponent that is beyond all use."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")
