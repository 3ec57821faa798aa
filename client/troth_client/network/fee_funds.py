"""Funds for fees: what the session key can still spend, and what it keeps for what matters more.

Owns: the rank of each instruction, the lamports kept for higher ranks, fees per round as measured.
Never: reads the chain or decides to leave; `participant/payer.py` does.
Next: `chain.py`, which asks before each send.

A key that runs dry gives up housekeeping first, then rounds, then audits; reveals never.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from solders.instruction import Instruction

from troth_client.network.sends import purpose
from troth_coordinator.chain import rent
from troth_coordinator.chain.transactions import FEE_PER_SIGNATURE_LAMPORTS

UNSPENDABLE_LAMPORTS = rent.exempt_lamports(0)
"""The balance that every account must keep: no fee may be paid out of it."""
SENDS_PER_ROUND = 2
"""A commit and an attestation: what a round costs at least."""

FULL_SHARE = 8
"""At most one part in so many of a full key is kept to pay for priority."""
MEASURED_ROUNDS = 64
"""The average is over about so many rounds: audits and congestion come and go."""
OWED_ROUNDS = 3
"""So many rounds may still be audited when rounds stop."""


class Rank(IntEnum):
    """The weight of a send; the value is the number of sends that stay affordable after it."""

    REVEAL = 0
    DUTY = 4
    ROUND = 8
    HOUSE = 12


_RANKS = {
    "reveal_verdict": Rank.REVEAL,
    "vote_case": Rank.REVEAL,
    "commit_verdict": Rank.DUTY,
    "post_openings": Rank.DUTY,
    "commit_payload": Rank.ROUND,
    "attest": Rank.ROUND,
    "vote_root": Rank.ROUND,
    "post_ready": Rank.ROUND,
    "activate": Rank.ROUND,
    "report_missing": Rank.ROUND,
}


def rank_of(instructions: Sequence[Instruction]) -> Rank:
    """Return the rank of a transaction: that of its first instruction."""
    return _RANKS.get(purpose(instructions[:1]), Rank.HOUSE)


@dataclass(slots=True)
class FeeFunds:
    """The lamports of one session key.

    spendable: None until the balance was read; then everything is allowed. priority_cap: what one
    send may pay for priority. paid: fees since `first_round`.
    """

    priority_cap: int = 0
    spendable: int | None = None
    paid: int = 0
    first_round: int | None = None
    round: int = 0

    def bound_by(self, full: int) -> None:
        """Keep less for priority where the key is never given more than `full` lamports.

        So what is kept stays far below the mark at which the key is refilled.
        """
        spendable = max(0, full - UNSPENDABLE_LAMPORTS)
        self.priority_cap = min(self.priority_cap, spendable // (FULL_SHARE * Rank.HOUSE))

    @property
    def send_lamports(self) -> int:
        """The most that one send may cost, rent aside."""
        return FEE_PER_SIGNATURE_LAMPORTS + self.priority_cap

    @property
    def round_lamports(self) -> int:
        """The average cost of a round, at least that of its two transactions."""
        least = SENDS_PER_ROUND * FEE_PER_SIGNATURE_LAMPORTS
        num_rounds = 0 if self.first_round is None else self.round - self.first_round
        return max(least, -(-self.paid // num_rounds)) if num_rounds else least

    @property
    def rounds_left(self) -> int | None:
        """The rounds that the balance pays for; None until it was read."""
        if self.spendable is None:
            return None
        return max(0, self.spendable - self.kept(Rank.ROUND)) // self.round_lamports

    def kept(self, rank: Rank) -> int:
        """Return the lamports that a send of this rank must leave for higher ones.

        Rounds stop while there is money for the audits of those before, as many as were measured.
        """
        kept = rank * self.send_lamports
        if rank < Rank.ROUND:
            return kept
        audits = self.round_lamports - SENDS_PER_ROUND * FEE_PER_SIGNATURE_LAMPORTS
        return kept + OWED_ROUNDS * audits

    def allows(self, rank: Rank) -> bool:
        """Tell whether a send of this rank leaves enough."""
        if self.spendable is None:
            return True
        return self.spendable >= FEE_PER_SIGNATURE_LAMPORTS + self.kept(rank)

    def read(self, balance: int, round_: int) -> None:
        """Take the balance as the chain shows it in a round."""
        self.spendable = max(0, balance - UNSPENDABLE_LAMPORTS)
        self.round = round_
        if self.first_round is None or round_ <= self.first_round:
            # Before rounds go on, fees are those of waiting: no round costs as much.
            self.first_round, self.paid = round_, 0
        elif round_ - self.first_round >= MEASURED_ROUNDS:
            self.first_round = (self.first_round + round_) // 2
            self.paid //= 2

    def pay(self, fee: int) -> None:
        """Count the fee of a confirmed send."""
        self.paid += fee
        if self.spendable is not None:
            self.spendable = max(0, self.spendable - fee)
