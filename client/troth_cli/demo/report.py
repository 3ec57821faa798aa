"""The summary of a demo in words.

Owns: labels and sentences. Never: a claim; `summary.py` and `outcome.py` have checked each.
Next: `../commands/demo.py`, which prints it.
"""

from collections import Counter
from collections.abc import Sequence

from troth_audit.cases import CaseFile, Statement
from troth_cli.demo.outcome import STRIKE, Outcome
from troth_cli.demo.summary import Summary
from troth_cli.view.amounts import sol
from troth_cli.view.cases import verdict_text
from troth_cli.view.output import Facts, Grid

MICRO = 10**6


def blocks(summary: Summary) -> list[Facts | Grid | str]:
    """Return the whole summary for people."""
    ended = summary.outcome
    found: list[Facts | Grid | str] = [Facts(_rows(summary), "demo")]
    if ended.cheat:
        found += [_cheat_facts(ended), *_cases(ended)]
    return [*found, _honest(ended), verdict(summary)]


def verdict(summary: Summary) -> str:
    """Return the verdict on the demo in words: success, or the claims that do not hold."""
    if not summary.agrees:
        return "FAILED: not every participant holds the root that is on chain."
    if not summary.has_learnt:
        return "FAILED: the validation loss did not fall by the margin."
    if not summary.outcome.is_caught:
        return f"FAILED: {summary.outcome.cheat} did not end as the threat model says."
    if summary.moved_stakes:
        moved = ", ".join(summary.moved_stakes)
        return f"FAILED: honest stake moved: {moved}. On a busy machine try --slot-ms 400."
    shown = "Every participant holds the root on chain, and the loss fell by more than the margin."
    return f"{shown} {_cost(summary.outcome)}"


def _rows(summary: Summary) -> list[tuple[str, object]]:
    first, last = summary.loss_first_micro / MICRO, summary.loss_last_micro / MICRO
    ratio = summary.dense_bytes / summary.payload_bytes if summary.payload_bytes else 0.0
    agreeing = sum(root == summary.chain_root for root in summary.roots.values())
    return [
        ("run", summary.run),
        ("rounds", summary.num_rounds),
        ("parameters", f"{summary.num_parameters:,}"),
        (
            "validation loss",
            f"{first:.3f} -> {last:.3f} nats a byte (margin {summary.margin_micro / MICRO:g})",
        ),
        (
            "payload",
            f"{summary.payload_bytes:,} bytes a step, {summary.bytes_per_parameter:.4f} a"
            f" parameter: {ratio:.0f} times less than dense bf16",
        ),
        ("payloads included", summary.num_included),
        ("fees", sol(summary.fees_lamports)),
        ("state root", summary.state_root),
        ("root on chain", summary.chain_root),
        ("honest that agree", f"{agreeing} of {len(summary.roots)}"),
        ("missing participants", ", ".join(summary.missing) or "none"),
        ("killed participants", ", ".join(summary.killed) or "none"),
        ("events", summary.events),
        ("weights", summary.weights),
    ]


def _cheat_facts(ended: Outcome) -> Facts:
    moneys = [case.money for case in ended.convictions]
    taken = [
        f"{sol(amount)} of its {source}"
        for source in ("stake", "unbonding", "unvested")
        if (amount := sum(getattr(money, source) for money in moneys))
    ]
    ends = [
        f"{sol(amount)} {where}"
        for name, where in (
            ("jurors", "to the jurors"),
            ("burned", "burned"),
            ("challenger", "to the challenger"),
            ("pool", "to the pool"),
        )
        if (amount := sum(getattr(money, name) for money in moneys))
    ]
    rows: list[tuple[str, object]] = [
        ("story", f"{ended.story} (index {ended.index})"),
        ("convictions", len(ended.convictions)),
        ("taken", ", ".join(taken) or "nothing"),
        ("where it went", ", ".join(ends) or "nowhere"),
        ("escrow", "paid out" if ended.is_paid_out else "not yet paid out"),
    ]
    if ended.fined:
        rows.append(("fined at once", sol(ended.fined)))
    if ended.strikes:
        rows.append(("strikes", ended.strikes))
    return Facts(rows, f"the cheat, {ended.cheat}, as the chain shows it")


def _cases(ended: Outcome) -> list[Grid]:
    columns = ("round", "first seats", "jury", "outcome", "taken")
    rows = [_case(case) for case in ended.cases]
    return [Grid(columns, rows, "its cases")] if rows else []


def _case(case: CaseFile) -> Sequence[object]:
    outcome = "convicted" if case.is_conviction else case.stage.lower()
    taken = sol(case.money.taken) if case.money.taken else "nothing was left"
    return case.key[0], _counted(case.seats), _counted(case.jurors), outcome, taken


def _counted(statements: Sequence[Statement]) -> str:
    counts = Counter(verdict_text(one.verdict) for one in statements)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "none"


def _honest(ended: Outcome) -> Grid:
    rows = [
        (name, sol(one.stake), "as deposited" if one.is_untouched else "MOVED", sol(one.fees))
        for name, one in ended.honest.items()
    ]
    return Grid(("honest", "stake", "", "earned as witness"), rows)


def _cost(ended: Outcome) -> str:
    if not ended.cheat:
        return "Nobody cheated, and nobody lost anything."
    kept = "no honest stake moved."
    if not ended.fault:
        return f"This cheat loses no stake, as the threat model says; {kept}"
    if ended.fault == STRIKE:
        return f"The cheat lost its rewards and took strikes; {kept}"
    return f"The cheat lost {sol(ended.slashed + ended.fined)}, and it has been paid out; {kept}"
