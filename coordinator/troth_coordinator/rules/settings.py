"""A run as its creator writes it down: the hashed config, the chain parameters, local hints.

Owns: merging layers of plain values (defaults < files < flags) and binding the two halves.
Never: opens a file; `troth_coordinator.config_files` does.
Next: `config.py` (hashed), `params.py` (on chain).
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from troth_coordinator.rules.base import FrozenModel, refuse_unknown_keys, unknown_key, validated
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.errors import ContradictionError, InvalidValueError
from troth_coordinator.rules.params import ChainParams, Preset
from troth_coordinator.rules.units import in_integers

Plain = dict[str, object]
PRESETS: tuple[Preset, ...] = ("localnet", "public")
BOUND = {
    "sequences_per_payload": ("train", "sequences_per_payload"),
    "max_rounds": ("schedule", "rounds"),
}
"""Chain parameters that the hashed config fixes: chain key -> (config section, key)."""


class Hints(FrozenModel):
    """Settings that may differ between machines and are therefore not hashed."""

    precision: Literal["auto", "fp32", "bf16"] = "auto"
    device: str = "auto"
    validate_every: int = Field(default=0, strict=True, ge=0, le=1_000_000)


class RunSettings(FrozenModel):
    """One frozen object: print it, hash `config`, send `chain` to the program."""

    config: RunConfig
    chain: ChainParams
    hints: Hints = Hints()


def merge(layers: Iterable[Mapping[str, object]]) -> Plain:
    """Return the layers laid over each other, the last one on top; sections are merged."""
    merged: Plain = {}
    for layer in layers:
        for key, value in layer.items():
            below = merged.get(key)
            if isinstance(below, Mapping) and isinstance(value, Mapping):
                merged[key] = merge((below, value))
            else:
                merged[key] = value
    return merged


def layer_in_integers(values: Mapping[str, object]) -> Plain:
    """Return one layer with its quantities as integers, under the keys of the models.

    Raises ContradictionError and InvalidValueError, as `units.py` says.
    """
    sections = {name: section_keys(name) for name in (*RunConfig.model_fields, "chain")}
    return {
        name: in_integers(value, sections[name], name)
        if isinstance(value, Mapping) and name in sections
        else value
        for name, value in values.items()
    }


def section_keys(name: str) -> list[str]:
    """Return the keys of a section; none for a key of the config that is no section."""
    if name == "chain":
        return list(ChainParams.model_fields)
    kind = RunConfig.model_fields[name].annotation
    if isinstance(kind, type) and issubclass(kind, FrozenModel):
        return list(kind.model_fields)
    return []


def settings_from(values: Mapping[str, object]) -> RunSettings:
    """Build the settings from plain values with the sections of RunConfig, `chain` and `hints`.

    `chain.preset` ("localnet" unless named) chooses the defaults under `chain`. The number of
    rounds and the sequences per payload are taken from the hashed config; naming them again under
    `chain` with another value is a ContradictionError. Also raises UnknownKeyError and
    InvalidValueError.
    """
    known = {*RunConfig.model_fields, "chain", "hints"}
    for key in values:
        if key not in known:
            raise unknown_key(key, known)
    config = validated(RunConfig, {k: v for k, v in values.items() if k not in ("chain", "hints")})
    return RunSettings(
        config=config,
        chain=_chain(_section(values, "chain"), config),
        hints=validated(Hints, _section(values, "hints"), "hints"),
    )


def _section(values: Mapping[str, object], name: str) -> Plain:
    section = values.get(name, {})
    if not isinstance(section, Mapping):
        raise InvalidValueError(name, "a section", repr(section), f"write [{name}]")
    return dict(section)


def _chain(values: Plain, config: RunConfig) -> ChainParams:
    name = values.pop("preset", "localnet")
    preset = next((p for p in PRESETS if p == name), None)
    if preset is None:
        raise InvalidValueError(
            "chain.preset", " or ".join(PRESETS), repr(name), "name one of these"
        )
    refuse_unknown_keys(ChainParams, values, "chain")
    for key, (section, field) in BOUND.items():
        fixed = getattr(getattr(config, section), field)
        if values.setdefault(key, fixed) != fixed:
            raise ContradictionError(
                f"chain.{key}",
                f"{section}.{field} = {fixed}, which the config hash covers",
                values[key],
                f"set {section}.{field} only",
            )
    return ChainParams.preset(preset, values)
