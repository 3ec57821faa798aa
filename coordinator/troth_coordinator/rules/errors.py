"""Errors of the rules, as one tree.

Owns: the exception types. Their sentence comes from `troth_coordinator.errors`.
Never: is raised for a programming mistake that a type checker finds.
Next: `config.py` and `params.py`, which raise most of them.

    RulesError
    ├── RangeError            a number does not fit its width or its documented range
    ├── ConfigError
    │   ├── UnknownKeyError   a key that no section has, with the nearest known one
    │   ├── InvalidValueError a value of the wrong type or outside its range
    │   ├── ContradictionError two values that cannot both hold
    │   └── UnboundConfigError a hash is asked for before the data manifest is known
    └── ChainOrderError       rounds or events that do not follow each other
"""

from troth_coordinator.errors import SubjectError


class RulesError(SubjectError):
    """Base of all errors of `troth_coordinator.rules`."""


class RangeError(RulesError, ValueError):
    """A number or a byte string does not fit the width that the protocol gives it."""


class ConfigError(RulesError):
    """A run configuration cannot be used."""


class UnknownKeyError(ConfigError):
    """A configuration holds a key that no section has."""


class InvalidValueError(ConfigError):
    """A configuration value has the wrong type or lies outside its range."""


class ContradictionError(ConfigError):
    """Two configuration values cannot both hold.

    `program_error` names the error with which the program refuses the same, or is empty.
    """

    def __init__(
        self, subject: str, expected: str, found: object, next_step: str, program_error: str = ""
    ) -> None:
        super().__init__(subject, expected, found, next_step)
        self.program_error = program_error


class UnboundConfigError(ConfigError):
    """A configuration without a data manifest has no hash yet."""


class ChainOrderError(RulesError):
    """Rounds or events do not follow each other without a gap."""
