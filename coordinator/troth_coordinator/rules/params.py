"""Parameters of a run that live on the chain (protocol section 12).

Owns: their names, widths, defaults (`localnet`, `public`) and the copy the program stores.
Never: hashed into the config; the run authority may change some between epochs.
Next: `params_checks.py` for what must hold between them, `config.py` for what is hashed instead.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from troth_coordinator.rules.base import FrozenModel, validated
from troth_coordinator.rules.ids import MAX_PARTICIPANTS, NONE, Lamports
from troth_coordinator.rules.params_checks import check_params, least_keep_stake
from troth_coordinator.rules.params_view import Admission, ParamsView

SLOTS_PER_HOUR: Final = 9_000
"""At the 400 ms slots of the public clusters."""

MAX_WINDOW_SLOTS: Final = 2**23
"""No window is longer: 39 days."""

MAX_PHASE_SLOTS: Final = 2**16
"""No phase of a round, Warmup or rest is longer: seven hours."""

MAX_LAMPORTS: Final = 2**56
"""No single amount is larger (all lamports in existence are below 2^60)."""

Window = Annotated[int, Field(strict=True, ge=1, le=MAX_WINDOW_SLOTS)]
PhaseWindow = Annotated[int, Field(strict=True, ge=1, le=MAX_PHASE_SLOTS)]
Delay = Annotated[int, Field(strict=True, ge=0, le=MAX_WINDOW_SLOTS)]
Amount = Annotated[int, Field(strict=True, ge=0, le=MAX_LAMPORTS)]
Count = Annotated[int, Field(strict=True, ge=1, le=2**32 - 1)]
Ppm = Annotated[int, Field(strict=True, ge=0, le=1_000_000)]
Seats = Annotated[int, Field(strict=True, ge=1, le=MAX_PARTICIPANTS)]

Preset = Literal["localnet", "public"]


class ChainParams(FrozenModel):
    """The parameters of `create_run`, validated as the program validates them.

    Amounts are lamports, windows are slots, probabilities are parts per million. Raises
    ContradictionError where two parameters cannot both hold.
    """

    min_stake_lamports: Amount
    keep_stake_lamports: Amount
    reward_per_payload: Amount
    absence_fee: Amount
    witness_fee: Amount
    recompute_cost: Amount
    bond_lamports: Amount
    sequences_per_payload: Annotated[int, Field(strict=True, ge=1, le=2**20)]
    max_rounds: Count
    join_until_round: Annotated[int, Field(strict=True, ge=0, le=NONE)]
    warmup_slots: PhaseWindow
    commit_slots: PhaseWindow
    attest_slots: PhaseWindow
    close_grace_slots: PhaseWindow
    halt_slots: PhaseWindow
    seed_delay_slots: Window
    vesting_slots: Window
    unbond_slots: Window
    max_pause_slots: Delay
    param_delay_slots: Window
    case_slots: Window
    openings_slots: Window
    verdict_commit_slots: Window
    verdict_reveal_slots: Window
    jury_commit_slots: Window
    jury_reveal_slots: Window
    appeal_slots: Window
    breaker_slots: Window
    rounds_per_epoch: Annotated[int, Field(strict=True, ge=1, le=100_000)]
    residual_rounds: Annotated[int, Field(strict=True, ge=1, le=10_000)]
    checkpoint_every: Annotated[int, Field(strict=True, ge=1, le=100_000)]
    seat_after_rounds: Annotated[int, Field(strict=True, ge=0, le=1_000)]
    p_base_ppm: Ppm
    p_new_ppm: Ppm
    sketch_factor: Count
    capacity: Seats
    ring: Seats
    min_members: Seats
    keep_rounds: Seats
    audit_cap: Seats
    max_witness_only: Annotated[int, Field(strict=True, ge=0, le=MAX_PARTICIPANTS)]
    admission: Literal["open", "allowlist"]
    seat_load: Count

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_params(self.to_view())
        return self

    def to_view(self) -> ParamsView:
        """Return the record in the shape of the account field; admission becomes its number."""
        values = self.model_dump(exclude={"admission"})
        return ParamsView(**values, admission=Admission[self.admission.upper()])

    @classmethod
    def from_view(cls, view: ParamsView) -> Self:
        """Return the validated parameters of an account; raises as the constructor does."""
        known = {one.value: one.name.lower() for one in Admission}
        admission = known.get(view.admission, str(view.admission))
        values = asdict(view) | {"admission": admission}
        return validated(cls, values, "chain")

    @classmethod
    def localnet(cls, **changes: int | str) -> Self:
        """Defaults for an embedded chain; money that is not named follows `reward_per_payload`."""
        return cls.preset("localnet", changes)

    @classmethod
    def public(cls, **changes: int | str) -> Self:
        """Defaults for a public cluster; money that is not named follows `reward_per_payload`."""
        return cls.preset("public", changes)

    @classmethod
    def preset(cls, name: Preset, changes: Mapping[str, object]) -> Self:
        """Return a preset with changes; InvalidValueError or ContradictionError if they clash."""
        values: dict[str, object] = {**_PRESETS[name], **changes}
        values.setdefault("join_until_round", values["max_rounds"])
        reward = values["reward_per_payload"]
        if isinstance(reward, int):
            for key, amount in money_of_reward(Lamports(reward)).items():
                values.setdefault(key, amount)
        least = _least_keep_stake(values)
        values.setdefault("keep_stake_lamports", least)
        return validated(cls, values, "chain")


def _least_keep_stake(values: Mapping[str, object]) -> object:
    """Return the least stake to keep; that to join with where a value is no number."""
    stake, reward, fee = (
        values.get(name) for name in ("min_stake_lamports", "reward_per_payload", "absence_fee")
    )
    if isinstance(stake, int) and isinstance(reward, int) and isinstance(fee, int):
        return least_keep_stake(stake, reward, fee)
    return stake


def money_of_reward(reward: Lamports) -> dict[str, Lamports]:
    """Return the amounts that protocol section 12 states in rewards."""
    # A recomputation costs four fifths of a reward at the usual margin, and its transactions.
    fee = reward * 17 // 20
    return {
        "absence_fee": reward,
        "witness_fee": Lamports(fee),
        "recompute_cost": reward,
        "bond_lamports": Lamports(max(14 * fee, 5 * reward)),
    }


def epoch_of(round_: int, rounds_per_epoch: int) -> int:
    """Return the epoch of a round: round / rounds_per_epoch, rounded down."""
    return round_ // rounds_per_epoch


def joins_are_open(round_: int, params: ParamsView) -> bool:
    """Tell whether a participant may still join: through `join_until_round` inclusive."""
    return round_ <= params.join_until_round


_COMMON: Final = {
    "sequences_per_payload": 8,
    "max_rounds": 1_000,
    "keep_rounds": 4,
    "residual_rounds": 50,
    "p_base_ppm": 100_000,
    "p_new_ppm": 500_000,
    "sketch_factor": 100,
}
_LOCALNET: Final = _COMMON | {
    "seat_load": 3,
    "min_stake_lamports": 100_000_000,
    "reward_per_payload": 1_000_000,
    "warmup_slots": 200,
    "commit_slots": 120,
    "attest_slots": 80,
    "close_grace_slots": 40,
    "halt_slots": 50,
    "seed_delay_slots": 2,
    "vesting_slots": 4_500,
    "unbond_slots": 5_400,
    "max_pause_slots": 900,
    "param_delay_slots": 50,
    "case_slots": 600,
    "openings_slots": 150,
    "verdict_commit_slots": 150,
    "verdict_reveal_slots": 150,
    "jury_commit_slots": 150,
    "jury_reveal_slots": 150,
    "appeal_slots": 150,
    "breaker_slots": 150,
    "rounds_per_epoch": 50,
    "checkpoint_every": 10,
    "seat_after_rounds": 0,
    "capacity": 16,
    "ring": 16,
    "min_members": 2,
    "audit_cap": 4,
    "max_witness_only": 4,
    "admission": "open",
}
_PUBLIC: Final = _COMMON | {
    "seat_load": 1,
    "min_stake_lamports": 1_000_000_000,
    "reward_per_payload": 1_000_000,
    "warmup_slots": 1_500,
    "commit_slots": 150,
    "attest_slots": 125,
    "close_grace_slots": 150,
    "halt_slots": 750,
    "seed_delay_slots": 8,
    "vesting_slots": 96 * SLOTS_PER_HOUR,
    "unbond_slots": 168 * SLOTS_PER_HOUR,
    "max_pause_slots": 72 * SLOTS_PER_HOUR,
    "param_delay_slots": 24 * SLOTS_PER_HOUR,
    "case_slots": 18_000,
    "openings_slots": 750,
    "verdict_commit_slots": 1_500,
    "verdict_reveal_slots": 1_500,
    "jury_commit_slots": 1_500,
    "jury_reveal_slots": 1_500,
    "appeal_slots": 24 * SLOTS_PER_HOUR,
    "breaker_slots": 24 * SLOTS_PER_HOUR,
    "rounds_per_epoch": 500,
    "checkpoint_every": 50,
    "seat_after_rounds": 20,
    "capacity": 64,
    "ring": 64,
    "min_members": 4,
    "audit_cap": 15,
    "max_witness_only": 16,
    "admission": "allowlist",
}
_PRESETS: Final[dict[Preset, Mapping[str, object]]] = {"localnet": _LOCALNET, "public": _PUBLIC}
