"""The losses that a member of a run risks, by fault: before anybody deposits, funds or creates.

Owns: the order of the lines and their words.
Never: a penalty or a price; `troth_attestation/slashing.py` and `rules/refusal.py` have them.
Next: `../commands/run.py` and `../workflows/take_part.py`, which show it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from troth_attestation import slashing
from troth_attestation.quorum import SeatFault
from troth_attestation.sampling import limit
from troth_attestation.slashing import Funds, SlashIntent
from troth_cli.view.amounts import sol
from troth_cli.view.output import Facts, Json
from troth_coordinator.rules.refusal import LAST_STEP, openings_price

if TYPE_CHECKING:
    from troth_coordinator.rules.params_view import ParamsView


@dataclass(frozen=True, slots=True)
class Loss:
    """A fault and its price: lamports for the first time, the second, and so on."""

    name: str
    fault: str
    lamports: tuple[int, ...]
    also: str = ""

    @property
    def text(self) -> str:
        """The amounts and what comes with them."""
        amounts = ", then ".join(map(sol, self.lamports))
        return f"{amounts}{'; ' if self.also else ''}{self.also}"


def losses(params: "ParamsView", stake: int) -> tuple[Loss, ...]:
    """Return what each fault costs a member with so many lamports at stake and nothing else.

    The price of refused openings is the highest that this run knows: everybody takes part, at the
    sampling chance of an established trainer.
    """
    funds = Funds(claimable=0, unvested=0, stake=stake, unbonding=0)
    prices = slashing.Prices(params.reward_per_payload, params.witness_fee, params.recompute_cost)

    def cost(penalty: SlashIntent) -> int:
        return slashing.take(penalty, funds).total

    def seat(fault: SeatFault, *, is_second: bool = False) -> int:
        return cost(slashing.seat(fault, funds, prices, is_second=is_second))

    price = first_refusal(params)
    refused = (cost(slashing.no_openings(funds, price, step)) for step in range(LAST_STEP))
    work = (cost(slashing.work(funds, is_repeated=is_repeated)) for is_repeated in (False, True))
    return (
        Loss("work", "work that does not match", tuple(work), "all unvested rewards; then barred"),
        Loss(
            "no_openings",
            "sampled, and openings not shown",
            tuple(refused),
            "the reward of that round; the third time jailed for an epoch",
        ),
        Loss("malformed", "a malformed payload", (cost(slashing.malformed(funds)),)),
        Loss("false_root", "a vote for a false root", (cost(slashing.false_root(funds)),)),
        Loss(
            "false_possession",
            "vouching for bytes not held",
            (cost(slashing.false_possession(funds)),),
            "a strike",
        ),
        Loss("wrong_ok", "a witness: ok before a conviction", (seat(SeatFault.WRONG_OK),)),
        Loss(
            "false_mismatch",
            "a witness: mismatch before an acquittal",
            (seat(SeatFault.FALSE_MISMATCH),),
        ),
        Loss(
            "silent_seat",
            "a witness: a verdict committed, not shown",
            (seat(SeatFault.NO_REVEAL), seat(SeatFault.NO_REVEAL, is_second=True)),
        ),
        Loss("absence", "missing often enough to be set aside", (params.absence_fee,)),
    )


def first_refusal(params: "ParamsView") -> int:
    """Return the lamports of the first refusal of openings, where the run is full."""
    everybody = (1 << params.capacity) - 1
    most = limit(params.audit_cap, params.seat_load, everybody, 0, everybody)
    p_ppm = params.p_base_ppm
    return openings_price(params.reward_per_payload, p_ppm, params.capacity * p_ppm, most)


def losses_values(params: "ParamsView", stake: int) -> Mapping[str, Json]:
    """Return them for JSON, by name."""
    return {one.name: list(one.lamports) for one in losses(params, stake)}


def losses_lines(params: "ParamsView", stake: int) -> list[str]:
    """Return them as lines for stderr."""
    block = losses_block(params, stake)
    width = max(len(label) for label, _ in block.rows)
    return [f"{block.title}:", *(f"  {label:<{width}}  {text}" for label, text in block.rows)]


def losses_block(params: "ParamsView", stake: int) -> Facts:
    """Return them for people."""
    rows = [(one.fault, one.text) for one in losses(params, stake)]
    return Facts(rows, f"what a stake of {sol(stake)} can lose")
