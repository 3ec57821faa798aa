"""A run from the chain as lines, where there is no terminal to draw on.

Owns: which changes are worth a line, and its words. Never: repeats a line.
Next: `run_display.py` for the same as a picture.
"""

from collections.abc import Iterator

from troth_audit.cases import CaseFile
from troth_audit.slashes import Slash
from troth_cli.observe.record import Observation, RoundSeen
from troth_cli.observe.words import time_left_text, voices
from troth_cli.view.amounts import sol
from troth_cli.view.cases import case_values, kind_text
from troth_client.telemetry.parts import nats


def first_lines(seen: Observation) -> Iterator[str]:
    """Yield what a reader needs to know at the beginning."""
    run = seen.run
    for warning in seen.warnings:
        yield f"warning: {warning}"
    yield f"run {run.run}"
    yield f"round {run.round} of {run.max_rounds}, {run.phase}, {_members(seen)}"
    if seen.newest is not None:
        yield round_line(seen.newest)
    yield f"time left: {time_left_text(seen.time_left)}"
    yield from map(case_line, (case for case in seen.cases if case.is_accused))
    yield from map(slash_line, seen.slashes)


def new_lines(seen: Observation, before: Observation) -> Iterator[str]:
    """Yield what has changed since another observation."""
    if seen.trouble and seen.trouble != before.trouble:
        yield f"no answer from the RPC node: {seen.trouble}"
    if before.trouble and not seen.trouble:
        yield "the RPC node answers again"
    yield from (f"warning: {one}" for one in seen.warnings if one not in before.warnings)
    if seen.run.phase != before.run.phase and _is_worth(seen.run.phase):
        yield f"phase {seen.run.phase} of round {seen.run.round}"
    yield from _people(seen, before)
    cases = {case_line(case) for case in before.cases}
    yield from (
        line for case in seen.cases if case.is_accused and (line := case_line(case)) not in cases
    )
    slashes = set(before.slashes)
    yield from (slash_line(one) for one in seen.slashes if one not in slashes)
    if seen.is_gone:
        yield "the run's accounts are closed"


def round_line(one: RoundSeen) -> str:
    """Return a closed round in one line."""
    chain = one.chain
    if chain.is_void:
        return f"round {chain.round} void: {chain.num_committed} of {chain.num_trainers} committed"
    loss = nats(one.mean_loss_micro) or "not known"
    included = f"{chain.num_included} of {chain.num_trainers} included"
    return f"round {chain.round}: training loss {loss} ({voices(one)}), {included}"


def case_line(case: CaseFile) -> str:
    """Return a case in one line."""
    values = case_values(case)
    round_, target, kind = case.key
    end = f", {values['case_outcome']}" if values["case_outcome"] else ""
    taken = f", {sol(case.money.taken)} taken" if case.money.taken else ""
    stage = case.stage.lower().replace("_", " ")
    return f"case: round {round_}, participant {target}, {kind_text(kind)}: {stage}{end}{taken}"


def slash_line(one: Slash) -> str:
    """Return a slash in one line."""
    fault = one.fault.name.lower().replace("_", " ")
    end = "paid out" if one.is_paid_out else "in escrow"
    return f"slash: round {one.round}, participant {one.index}, {fault}: {sol(one.taken)} ({end})"


def _is_worth(phase: str) -> bool:
    return phase not in ("commit", "attest")


def _members(seen: Observation) -> str:
    num = len(seen.participants)
    return "1 participant" if num == 1 else f"{num} participants"


def _people(seen: Observation, before: Observation) -> Iterator[str]:
    known = {(one.index, one.owner): one for one in before.participants}
    for one in seen.participants:
        old = known.get((one.index, one.owner))
        if old is None:
            yield f"participant {one.index} joined as {one.role}: {one.owner}"
        elif one.status != old.status:
            yield f"participant {one.index} is {one.status} now, it was {old.status}"
