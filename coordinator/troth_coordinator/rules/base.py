"""The frozen pydantic model that every configuration record derives from.

Owns: strictness (no unknown keys, no coercion) and the translation of pydantic's errors.
Never: holds a field.
Next: `config.py` and `params.py`, which derive from it.
"""

import difflib
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Final, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from troth_coordinator.rules.errors import InvalidValueError, UnknownKeyError
from troth_coordinator.rules.units import names_of, short_name, spellings, unit_of


class FrozenModel(BaseModel):
    """A record that cannot change, refuses unknown keys and never converts a value."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


MOST_NAMED: Final = 20
"""So many keys are read at a glance; of more, an error names those that are spelt alike."""
NEXT_STEPS: Final = {
    "version": "use the release of troth that this run was created with, or prepare a new run"
}
"""The way out of a bad value where it is not to correct it, by key."""
Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], values: Mapping[str, object], where: str = "") -> Model:
    """Build a model from plain values; every refusal becomes a ConfigError with the full key.

    Raises UnknownKeyError (with the nearest known key), InvalidValueError, and whatever the
    model's own checks raise (ContradictionError).
    """
    refuse_unknown_keys(model, values, where)
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(part for part in (where, *map(str, first["loc"])) if part)
        value = first["input"]
        shown = str(value) if isinstance(value, Decimal) else repr(value)
        found = "nothing" if first["type"] == "missing" else shown
        expected = first["msg"].removeprefix("Input should be ")
        name = key.rpartition(".")[2]
        step = NEXT_STEPS.get(key, "correct this key")
        step += f": {spellings(name)}" if unit_of(name) else ""
        raise InvalidValueError(key, expected, found, step) from error


def refuse_unknown_keys(
    model: type[BaseModel], values: Mapping[str, object], where: str = ""
) -> None:
    """Raise UnknownKeyError for the first key, at any depth, that the model does not have."""
    for key, value in values.items():
        field = model.model_fields.get(key)
        if field is None:
            raise unknown_key(key, model.model_fields, where)
        inner = _model_of(field.annotation)
        if inner is not None and isinstance(value, Mapping):
            refuse_unknown_keys(inner, value, f"{where}.{key}" if where else key)


def unknown_key(key: str, known: Collection[str], where: str = "") -> UnknownKeyError:
    """Return the error for an unknown key, with the nearest known one as the next step."""
    names = names_of(known)
    near = difflib.get_close_matches(key, names, n=4, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else "remove it"
    meant = [name for name in known if near and near[0] in (name, short_name(name))]
    if len(names) <= MOST_NAMED:
        expected = f"one of {', '.join(names)}"
    else:
        expected = f"one of {len(names)} keys" + (f", like {', '.join(near)}" if near else "")
    hint += "".join(f" Write {spellings(name)}" for name in meant if unit_of(name))
    return UnknownKeyError(f"{where}.{key}" if where else key, expected, "an unknown key", hint)


def follow(values: object, key: str, leader: str) -> object:
    """Give `key` the value of `leader` where only the leader is named, before the checks."""
    if isinstance(values, dict) and key not in values and leader in values:
        return values | {key: values[leader]}
    return values


def _model_of(annotation: object) -> type[BaseModel] | None:
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
