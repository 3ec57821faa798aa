"""The chain parameters of a run, as the `Run` account holds them.

Generated: run scripts/gen/params_view.py instead of editing.

Owns: one frozen record with the program's field names, and the enum that is stored in it.
Never: checks a value; params.py does. Reserved bytes are left out.
Next: params.py for bounds and defaults; view.py for the accounts.
"""

from dataclasses import dataclass
from enum import IntEnum

from troth_coordinator.rules.ids import Lamports, RoundIndex


class Admission(IntEnum):
    """The rule by which participants are let into a run."""

    OPEN = 0
    ALLOWLIST = 1


@dataclass(frozen=True, slots=True)
class ParamsView:
    """The chain parameters of a run, in the order of the program's `Params`."""

    min_stake_lamports: Lamports
    """Stake that a participant deposits, and that unbonding in part may not go below."""
    keep_stake_lamports: Lamports
    """Stake that a member must keep: at least half of `min_stake_lamports`."""
    reward_per_payload: Lamports
    """Reward of an included payload."""
    absence_fee: Lamports
    """Fee for missing so often that a member becomes inactive."""
    witness_fee: Lamports
    """Fee of a witness for a verdict."""
    recompute_cost: Lamports
    """The cost of one recomputation, the unit of the witness penalty."""
    bond_lamports: Lamports
    """Bond of a case."""
    sequences_per_payload: int
    """Sequences that one payload trains on."""
    max_rounds: int
    """Rounds of the run (R of the schedule)."""
    join_until_round: RoundIndex
    """Last round during which joining is possible."""
    warmup_slots: int
    """Window of Warmup."""
    commit_slots: int
    """Window of Commit."""
    attest_slots: int
    """Window of Attest."""
    close_grace_slots: int
    """Slots after Attest before a round may be closed void."""
    halt_slots: int
    """Slots that a halted run rests."""
    seed_delay_slots: int
    """Slots at least from the close of a round to the slot whose hash seeds its audits."""
    vesting_slots: int
    """Slots until a reward may be claimed, counted from the end of its bucket."""
    unbond_slots: int
    """Slots until a withdrawn stake is paid."""
    max_pause_slots: int
    """Slots that pauses may last, in all, within `unbond_slots`."""
    param_delay_slots: int
    """Slots between the request of new parameters and their first possible epoch."""
    case_slots: int
    """Window for opening a case after a close."""
    openings_slots: int
    """Window for the openings of an audit."""
    verdict_commit_slots: int
    """Window of verdict commits."""
    verdict_reveal_slots: int
    """Window of verdict reveals."""
    jury_commit_slots: int
    """Window of the jury's commits."""
    jury_reveal_slots: int
    """Window of the jury's reveals."""
    appeal_slots: int
    """Window of an appeal."""
    breaker_slots: int
    """Delay of slashes while the breaker holds."""
    rounds_per_epoch: int
    """Rounds of an epoch."""
    residual_rounds: int
    """Residuals are zeroed every so many rounds."""
    checkpoint_every: int
    """A checkpoint is stored every so many rounds."""
    seat_after_rounds: int
    """Rounds after which a witness may be seated."""
    p_base_ppm: int
    """Sampling chance of an established participant, in ppm."""
    p_new_ppm: int
    """Sampling chance of a new participant, in ppm."""
    sketch_factor: int
    """Sketches differ where this times their squared distance exceeds the larger squared norm."""
    capacity: int
    """Participants that the run admits."""
    ring: int
    """Rounds kept on chain."""
    min_members: int
    """Members needed to open a round."""
    keep_rounds: int
    """A round opens only when the seed of the round this far back is settled."""
    audit_cap: int
    """Audits of a round."""
    max_witness_only: int
    """Participants that only witness."""
    admission: Admission
    """0 open, 1 allowlist."""
    seat_load: int
    """Seats that an eligible witness takes in a round, at most, on average."""
