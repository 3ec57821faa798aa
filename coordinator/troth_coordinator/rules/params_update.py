"""Changes of the parameters of a run: which there are, and how far they go (protocol section 3).

Owns: the comparison of a request with the parameters in force and those of the creation, in the
program's order and under its error names.
Never: applies a change; the program does, at an epoch.
Next: `params_checks.py` for what must hold between parameters at any time.
"""

from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from troth_coordinator.rules.params_checks import Rule, check_params, require
from troth_coordinator.rules.params_view import ParamsView

MAX_UPDATE_FACTOR: Final = 2
"""A window grows at most so many times, and a reward so far up or down, from the creation."""

GROWING: Final = (
    "warmup_slots",
    "commit_slots",
    "attest_slots",
    "close_grace_slots",
    "halt_slots",
    "param_delay_slots",
    "openings_slots",
    "verdict_commit_slots",
    "verdict_reveal_slots",
    "jury_commit_slots",
    "jury_reveal_slots",
    "appeal_slots",
    "breaker_slots",
)
"""Time in which a participant acts or defends itself: an update may lengthen it, never shorten."""

CHANGEABLE: Final = ("reward_per_payload", "min_members", *GROWING)
"""All that an update may change; the rest is fixed at creation."""

IMMUTABLE: Final = tuple(f.name for f in fields(ParamsView) if f.name not in CHANGEABLE)
"""A participant decides on these when it joins: no update changes them."""


def check_update(created: ParamsView, old: ParamsView, new: ParamsView) -> None:
    """Raise ContradictionError if an update changes what is fixed, or goes too far.

    created: the parameters of `create_run`; old: those in force. Whether the pool can pay a higher
    reward is for the program to say (`RewardUnfunded`).
    """
    require(_fixed(old, new))
    require(_limits(created, old, new))
    check_params(new)


def _fixed(old: ParamsView, new: ParamsView) -> Iterator[Rule]:
    for field in IMMUTABLE:
        yield Rule(
            "ImmutableParameter",
            getattr(old, field) == getattr(new, field),
            field,
            f"{getattr(old, field)}, fixed at creation",
            getattr(new, field),
            "leave it as it is, or create a new run",
        )


def _limits(created: ParamsView, old: ParamsView, new: ParamsView) -> Iterator[Rule]:
    yield Rule(
        "MinMembersGrow",
        new.min_members <= old.min_members,
        "min_members",
        f"at most {old.min_members}, as it is",
        new.min_members,
        "a run may only begin with fewer than its members were told, never with more",
    )
    least = -(-created.reward_per_payload // MAX_UPDATE_FACTOR)
    most = created.reward_per_payload * MAX_UPDATE_FACTOR
    yield Rule(
        "RewardOutOfRange",
        least <= new.reward_per_payload <= most,
        "reward_per_payload",
        f"{least} to {most}, half to twice that of the creation",
        new.reward_per_payload,
        "choose one in this range, or create a new run",
    )
    for field in GROWING:
        yield Rule(
            "WindowShrinks",
            getattr(new, field) >= getattr(old, field),
            field,
            f"at least {getattr(old, field)}, as it is",
            getattr(new, field),
            "leave participants at least the time that they joined for",
        )
    for field in GROWING:
        longest = MAX_UPDATE_FACTOR * getattr(created, field)
        yield Rule(
            "WindowTooLong",
            getattr(new, field) <= longest,
            field,
            f"at most {longest}, twice that of the creation",
            getattr(new, field),
            "choose a shorter one, or create a new run",
        )
