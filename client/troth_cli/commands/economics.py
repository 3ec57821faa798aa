"""`troth run economics`: the cheating that the parameters of a run deter, by closed formulas.

Owns: the questions, their defaults from a run or from settings, and printing each answer beside
the run's own value. Never: a formula; `troth_coordinator.rules.economics` has them.
Next: `troth_coordinator.rules.economics`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final

import typer

from troth_cli.errors import InputError
from troth_cli.options import Networked, Settings, command
from troth_cli.view.amounts import address_of_run, lamports, ppm, sol
from troth_cli.view.output import Facts, Grid, Output
from troth_cli.view.terms import losses_block

if TYPE_CHECKING:
    from troth_coordinator.rules.config import JudgeSection
    from troth_coordinator.rules.economics import Advice, Assumptions
    from troth_coordinator.rules.params_view import ParamsView

_TOO_LITTLE: Final = {
    "stake": "half of the stake does not deter skipping (chain.min_stake_lamports)",
    "refusing": "refusing to show the work pays (chain.p_base_ppm, chain.min_stake_lamports)",
    "witness_pay": "a verdict costs more than its pay (chain.witness_fee)",
    "witness_penalty": "idle witnesses lose too little (chain.recompute_cost)",
}
"""The fault where the run has not enough, and the parameters that change it."""
_USUAL_COST = Fraction(4, 5)
"""Cost as a share of the reward, if no cost is given: the margin of the worked values in docs."""


@dataclass(frozen=True, kw_only=True)
class EconomicsOptions(Networked):
    """Options of `troth run economics`."""

    run_address: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="The run's address, or its file: take defaults from this run on chain.",
            show_default=False,
        ),
    ] = ""
    settings: Settings = field(default_factory=list)
    reward: Annotated[
        str, typer.Option("--reward", metavar="SOL", help="R per payload; else the run's.")
    ] = ""
    cost: Annotated[
        str,
        typer.Option(
            "--cost", metavar="SOL", help="C of computing one payload; else four fifths of R."
        ),
    ] = ""
    gain: Annotated[
        str, typer.Option("--gain", metavar="SOL", help="G of one skipped payload; else all of C.")
    ] = ""
    outside_gain: Annotated[
        str,
        typer.Option(
            "--outside-gain",
            metavar="SOL",
            help="B: the value of one participant's wrong votes to it in a round.",
        ),
    ] = "0"
    unvested: Annotated[
        str,
        typer.Option(
            "--unvested", metavar="SOL", help="V: rewards that a conviction finds unvested."
        ),
    ] = "0"
    sampling: Annotated[
        str,
        typer.Option(
            "--sampling", metavar="SHARE", help="p of payloads, like 0.1 or 10%; else the run's."
        ),
    ] = ""
    power: Annotated[
        str,
        typer.Option("--power", metavar="SHARE", help="q of sampled cheats that the test finds."),
    ] = "0.95"
    adversaries: Annotated[
        str,
        typer.Option(
            "--adversaries", metavar="SHARE", help="Witnesses that work for the cheat; gives mu."
        ),
    ] = "0.2"
    capture: Annotated[
        str,
        typer.Option(
            "--capture",
            metavar="SHARE",
            help="mu of audits that the dishonest decide; else from --adversaries.",
        ),
    ] = ""
    forged: Annotated[
        str,
        typer.Option(
            "--forged", metavar="SHARE", help="Tiles of a payload that a smuggler forges."
        ),
    ] = "0.05"
    lazy: Annotated[
        str, typer.Option("--lazy", metavar="SHARE", help="Witnesses that compute nothing.")
    ] = "0.2"
    seats: Annotated[
        int, typer.Option("--seats", metavar="N", help="Witnesses that recompute one payload.")
    ] = 3
    fees: Annotated[
        str,
        typer.Option("--fees", metavar="SOL", help="Transaction fees of a witness."),
    ] = "0.00001"


def register(group: typer.Typer) -> None:
    """Add the command to `troth run`."""
    command(group, "economics", EconomicsOptions)(economics)


def economics(options: EconomicsOptions, output: Output) -> None:
    """Show what the rules deter: skipping, refusing, forging tiles, idle witnesses, framing.

    Values that you do not give come from RUN on chain, or else from --config files and --set
    (chain.preset=public for the defaults of a public run).

    Detection per round: d = p * q * (1 - mu).

    Rounds until 95 % of cheats are caught: n = ln 0.05 / ln(1 - d).

    Minimum stake, if all of it is lost: S = (G + B) / d - R - V. A first conviction takes half, so
    a stake of 2 * S deters the first time as well.

    mu: colluders hold 3 of 5 seats, or 3 of 7 jurors, drawn from those eligible at the open.

    Refusing to show the work costs F = max(12 * R, 1.8 * R / q), the next time twice that, then
    four times: q * (F + R) >= G + B. Here q is p, or less where the limit of audits binds. No price
    is more than half of what a member holds. The first table counts on the stake to stay, the last
    one on the stake to join.

    Forged tiles: one of n drawn ones is enough, 1 - (1 - f)^n. Low-rank gradients within the
    tolerance are accepted: they save at most C / 3 of a payload, and nothing punishes them.

    Recomputed work, as a share of training: p * seats.

    Witness pay: w = C + fees. Laziness is caught with chance h = 1 - lazy^(seats - 1), and loses
    with a penalty A = max(10 * C, C / h).

    The exit code is 0 only if the run has enough of everything that is needed.

    False convictions per round at which honest work still pays at S: f < (R - C - fees) / S.
    """
    from troth_coordinator.rules.economics import advise

    params, judge = _params(options)
    given = _assumptions(options, params, judge)
    advice = advise(given)
    enough = _enough(advice, params)
    values = _values(given, advice, params) | {"is_enough": enough, "passes": all(enough.values())}
    output.result(values, *_blocks(given, advice, params), *_verdict(enough, params))
    if not all(enough.values()):
        raise typer.Exit(1)


def _params(options: EconomicsOptions) -> "tuple[ParamsView, JudgeSection]":
    """Return the parameters of the run on chain, or of the settings where no run is named.

    The judge's section is that of the settings, or the default one.
    """
    from troth_cli.settings import run_settings

    settings = run_settings(options.config, options.settings)
    if not options.run_address:
        return settings.chain.to_view(), settings.config.judge
    if options.settings:
        raise InputError(
            "RUN or --set", "both", "Leave out RUN to try other settings.", options.run_address
        )
    from troth_cli.connection import connect, run_async

    run = address_of_run(options.run_address)

    async def read() -> "ParamsView":
        async with connect(options.rpc, options.program) as client:
            return (await client.read_run(run)).params

    return run_async(read()), settings.config.judge


def _assumptions(
    options: EconomicsOptions, params: "ParamsView", judge: "JudgeSection"
) -> "Assumptions":
    from troth_attestation.sampling import limit
    from troth_coordinator.rules.audits import MAX_SEATS
    from troth_coordinator.rules.economics import PPM, Assumptions, captured

    if not 1 <= options.seats <= MAX_SEATS:
        raise InputError(
            f"1 to {MAX_SEATS}", str(options.seats), "An audit has 3, extended 5 or 7.", "--seats"
        )
    reward = lamports(options.reward, "--reward") if options.reward else params.reward_per_payload
    cost = lamports(options.cost, "--cost") if options.cost else int(reward * _USUAL_COST)
    num_bad = round(params.capacity * ppm(options.adversaries, "--adversaries") / PPM)
    mu = int(captured(params.capacity, num_bad) * PPM)
    everybody = (1 << params.capacity) - 1
    return Assumptions(
        p_ppm=ppm(options.sampling, "--sampling") if options.sampling else params.p_base_ppm,
        power_ppm=ppm(options.power, "--power"),
        capture_ppm=ppm(options.capture, "--capture") if options.capture else mu,
        lazy_ppm=ppm(options.lazy, "--lazy"),
        seats=options.seats,
        reward=reward,
        cost=cost,
        gain=lamports(options.gain, "--gain") if options.gain else cost,
        outside_gain=lamports(options.outside_gain, "--outside-gain"),
        unvested=lamports(options.unvested, "--unvested"),
        fee_cost=lamports(options.fees, "--fees"),
        keep_stake=params.keep_stake_lamports,
        people=params.capacity,
        max_audits=limit(params.audit_cap, params.seat_load, everybody, 0, everybody),
        forged_ppm=ppm(options.forged, "--forged"),
        drawn_tiles=judge.openings_tiles,
    )


def _values(given: "Assumptions", advice: "Advice", params: "ParamsView") -> dict[str, object]:
    stake = advice.minimum_stake
    return {
        "given": asdict(given),
        "detection": float(advice.detection),
        "rounds_to_capture": advice.rounds_to_capture,
        "minimum_stake_lamports": stake,
        "first_conviction_stake_lamports": None if stake is None else 2 * stake,
        "refusal_prices_lamports": list(advice.refusal_prices),
        "is_refusing_deterred": advice.is_refusing_deterred,
        "forging_seen": float(advice.forging_seen),
        "rounds_to_see_forging": advice.rounds_to_see_forging,
        "low_rank_saves_lamports": advice.low_rank_saves,
        "audit_share": float(advice.audit_share),
        "witness_pay_lamports": advice.witness_pay,
        "laziness_caught": float(advice.laziness_caught),
        "witness_penalty_lamports": advice.witness_penalty,
        "tolerable_false_slashes_ppb": advice.false_slash_ppb,
        "run": {
            "min_stake_lamports": params.min_stake_lamports,
            "witness_fee_lamports": params.witness_fee,
            "witness_penalty_lamports": _run_penalty(params),
        },
    }


def _enough(advice: "Advice", params: "ParamsView") -> dict[str, bool]:
    """Return for each question whether the run has what is needed."""
    stake, penalty = advice.minimum_stake, advice.witness_penalty
    return {
        "stake": stake is not None and 2 * stake <= params.min_stake_lamports,
        "refusing": advice.is_refusing_deterred,
        "witness_pay": advice.witness_pay <= params.witness_fee,
        "witness_penalty": penalty is not None and penalty <= _run_penalty(params),
    }


def _verdict(enough: Mapping[str, bool], params: "ParamsView") -> list[Facts | str]:
    """Return what a member can lose, and whether the parameters deter what they should."""
    missing = [_TOO_LITTLE[name] for name, is_enough in enough.items() if not is_enough]
    said = f"fail: {'; '.join(missing)}" if missing else "pass: cheating, refusing and idling lose"
    return [losses_block(params, params.min_stake_lamports), said]


def _blocks(given: "Assumptions", advice: "Advice", params: "ParamsView") -> list[Facts | Grid]:
    stake, penalty = advice.minimum_stake, advice.witness_penalty
    rounds = advice.rounds_to_capture
    asked = Facts(
        [
            ("reward R, cost C", f"{sol(given.reward)}, {sol(given.cost)}"),
            ("gain G, outside B", f"{sol(given.gain)}, {sol(given.outside_gain)}"),
            ("unvested V", sol(given.unvested)),
            ("sampling p, power q", f"{_percent(given.p_ppm)}, {_percent(given.power_ppm)}"),
            ("captured mu, lazy", f"{_percent(given.capture_ppm)}, {_percent(given.lazy_ppm)}"),
            ("seats, fees", f"{given.seats}, {sol(given.fee_cost)}"),
        ],
        "Given",
    )
    rows = [
        ("detection per round", _share(advice.detection), "", ""),
        ("rounds until 95 % are caught", "never" if rounds is None else rounds, "", ""),
        ("minimum stake", *_compared(stake, params.min_stake_lamports)),
        ("... if a conviction takes half", *_compared(_double(stake), params.min_stake_lamports)),
        ("refusing costs, with the stake to stay", *_prices(advice)),
        ("refusing to show the work loses", "yes" if advice.is_refusing_deterred else "no", "", ""),
        (f"forging {_percent(given.forged_ppm)} of tiles is seen", *_forging(advice)),
        ("low-rank gradients save, unpunished", sol(advice.low_rank_saves), "", ""),
        ("recomputed, of all training", _share(advice.audit_share), "", ""),
        ("witness pay", *_compared(advice.witness_pay, params.witness_fee)),
        ("laziness caught", _share(advice.laziness_caught), "", ""),
        ("witness penalty", *_compared(penalty, _run_penalty(params))),
        ("false convictions per round below", _false_slashes(advice.false_slash_ppb), "", ""),
    ]
    return [asked, Grid(("", "needed", "the run has", "enough"), rows)]


def _prices(advice: "Advice") -> tuple[str, str, str]:
    return ", then ".join(map(sol, advice.refusal_prices)), "", ""


def _forging(advice: "Advice") -> tuple[str, str, str]:
    rounds = advice.rounds_to_see_forging
    return f"{_share(advice.forging_seen)} of audits", f"in {rounds or 'no'} rounds", ""


def _run_penalty(params: "ParamsView") -> int:
    from troth_coordinator.rules.economics import WITNESS_PENALTY_FACTOR

    return WITNESS_PENALTY_FACTOR * params.recompute_cost


def _double(amount: int | None) -> int | None:
    return None if amount is None else 2 * amount


def _compared(needed: int | None, has: int) -> tuple[str, str, str]:
    if needed is None:
        return "no amount is enough", sol(has), "no"
    return sol(needed), sol(has), "yes" if has >= needed else "no"


def _percent(parts: int) -> str:
    return _share(Fraction(parts, 10**6))


def _share(part: Fraction) -> str:
    return f"{float(part * 100):.4g} %"


def _false_slashes(ppb: int | None) -> str:
    return "-" if ppb is None else f"{ppb / 1e9:.3g}"
