"""How `troth_coordinator.rules` answers each golden vector. Next: checks_judge.py."""

from collections.abc import Callable
from typing import Any

from troth_coordinator.rules import (
    chain_hash,
    eligibility,
    exact,
    phase,
    refusal,
    reward,
    root,
    schedule,
    seeds,
    standing,
)
from troth_coordinator.rules import outage as rules_outage
from troth_coordinator.rules.assignment import SequenceOrder
from troth_coordinator.rules.bitmap import from_indices, indices_of
from troth_coordinator.rules.config import ScheduleSection
from troth_coordinator.rules.errors import ContradictionError
from troth_coordinator.rules.expected_members import ExpectedMembers
from troth_coordinator.rules.hashing import H
from troth_coordinator.rules.params_checks import check_params
from troth_coordinator.rules.params_update import check_update
from troth_coordinator.rules.params_view import Admission, ParamsView
from troth_coordinator.rules.reward import Buckets
from troth_coordinator.rules.root import Turnout

Given = dict[str, Any]
unhex = bytes.fromhex


def hashing(given: Given) -> Any:
    return H(given["tag"], *map(unhex, given["fields"])).hex()


def root_vote(given: Given) -> Any:
    run, owner, state = (unhex(given[key]) for key in ("run", "owner", "state_root"))
    return root.root_vote(run, given["round"], owner, state).hex()


def sigma(given: Given) -> Any:
    return seeds.sigma(unhex(given["slot_hash"]), unhex(given["run"]), given["round"]).hex()


def wanted_slot(given: Given) -> Any:
    grid = seeds.grid(given["delay"], given["part"])
    return seeds.wanted_slot(given["slot"], given["delay"], grid)


def expected_members(given: Given) -> Any:
    found = ExpectedMembers()
    for number, one in enumerate(given["opens"]):
        found = found.opened(one["members"], one["epoch"], is_first=number == 0)
        found = found.without(one["gone"])
    return {"of_epoch": found.of_epoch, "before": found.before, "number": found.number}


def phase_due(given: Given) -> Any:
    end = phase.end_by_time(given["start"], given["end"], given["quorum_slot"])
    return phase.may_end(given["slot"], end, given["acted"], given["all"])


def round_decision(given: Given) -> Any:
    turnout = Turnout(given["trainers"], given["members"], given["committed"])
    received = [given["attest_bitmaps"][i] for i in indices_of(given["attested"])]
    made = root.decide(turnout, given["votes"], received)
    return {"outcome": made.outcome.value, "included": made.included}


def root_only(given: Given) -> Any:
    turnout = Turnout(given["trainers"], given["trainers"], given["committed"])
    return root.decide_root_only(turnout, given["votes"]).outcome.value


def unavailable_strikes(given: Given) -> Any:
    return root.unavailable_strikes(given["committed"], given["included"], given["unavailable"])


def _buckets(given: Given) -> Buckets:
    return Buckets(tuple(given["windows"]), tuple(given["amounts"]))


def vesting(given: Given) -> Any:
    window = reward.window_of(given["slot"], given["vesting_slots"])
    after, vested = reward.credit(_buckets(given), window, given["credit"])
    return {"windows": list(after.windows), "amounts": list(after.amounts), "vested": vested}


def vesting_release(given: Given) -> Any:
    after, released = reward.release(_buckets(given), given["slot"], given["vesting_slots"])
    return {"amounts": list(after.amounts), "released": released}


def vesting_take(given: Given) -> Any:
    after, taken = reward.take(_buckets(given), given["lamports"])
    return {"amounts": list(after.amounts), "taken": taken}


def scaled_reward(given: Given) -> Any:
    return reward.scaled_reward(given["reward_per_payload"], given["pool"], given["num_included"])


def chain_close(given: Given) -> Any:
    closed = chain_hash.ClosedRound(
        round=given["round"],
        members=given["members"],
        trainers=given["trainers"],
        commits=tuple(
            chain_hash.Commit(c["index"], unhex(c["header_hash"]), unhex(c["root_vote"]))
            for c in given["commits"]
        ),
        attestations=tuple(
            chain_hash.Attestation(a["index"], a["bitmap"], unhex(a["possession"]))
            for a in given["attests"]
        ),
        included=given["included"],
        canonical_root=unhex(given["canonical_root"]),
    )
    return chain_hash.after_close(unhex(given["previous"]), closed).hex()


def chain_event(given: Given) -> Any:
    previous, body = unhex(given["previous"]), unhex(given["body"])
    return chain_hash.after_event(previous, given["sequence"], given["kind"], body).hex()


def misses(given: Given) -> Any:
    counted = standing.Misses()
    for duties in given["rounds"]:
        counted = standing.after_round(counted, [standing.Duty(*duty) for duty in duties])
    numbers = {"in_row": counted.in_row, "deadline_in_row": counted.deadline_in_row}
    return numbers | {"inactive": counted.is_inactive, "fined": counted.is_fined}


def return_round(given: Given) -> Any:
    return standing.return_round(given["inactive_round"], given["round"], given["rounds_per_epoch"])


def stake_to_stay(given: Given) -> Any:
    return standing.stake_to_stay(given["keep"], given["min"], given["work_faults"])


def strikes(given: Given) -> Any:
    ring, jailed = standing.add_strike(tuple(given["ring"]), given["round"])
    recent = standing.count_within(ring, given["round"])
    return {"ring": list(ring), "jailed": jailed, "recent": recent}


def outage(given: Given) -> Any:
    presence, fined = rules_outage.Presence(given["first"]), []
    for step in given["steps"]:
        if len(step) == 1:
            presence = rules_outage.act(presence, step[0], given["shortest"])
        else:
            presence, is_fined = rules_outage.miss(presence, step[0])
            fined.append(is_fined)
    return fined


def openings_price(given: Given) -> Any:
    return refusal.openings_price(**given)


def openings_step(given: Given) -> Any:
    known, steps = refusal.Refusals(), []
    for round_, now, included_total in given["refusals"]:
        known, is_new = refusal.add_refusal(known, round_, now, included_total)
        assert known.doublings == known.step - 1
        steps.append([is_new, known.step])
    return steps


def hidden_verdict(given: Given) -> Any:
    kind = rules_outage.hidden_verdict(given["round"], given["decided_round"])
    return kind.name.lower()


def eligible_at_open(given: Given) -> Any:
    served = {index: rounds for index, rounds, _ in given["witnesses"]}
    earned = from_indices(
        index
        for index, rounds, joined in given["witnesses"]
        if eligibility.has_earned_seat(rounds, joined, given["seat_after"])
    )
    return eligibility.fill_bench(earned, from_indices(served), served.__getitem__)


def slot_hashes(given: Given) -> Any:
    found = seeds.first_at_or_after(unhex(given["data"]), given["wanted"])
    return {"outcome": found.lookup.value, "slot": found.slot, "hash": found.hash.hex()}


def params(given: Given) -> Any:
    return _refusal_of(lambda: check_params(_params(given)))


def params_update(given: Given) -> Any:
    created, old, new = (_params(given[name]) for name in ("created", "old", "new"))
    return _refusal_of(lambda: check_update(created, old, new))


def _params(given: Given) -> ParamsView:
    return ParamsView(**given | {"admission": Admission(given["admission"])})


def _refusal_of(check: Callable[[], None]) -> str:
    try:
        check()
    except ContradictionError as error:
        return error.program_error
    return "ok"


def py_perm(given: Given) -> Any:
    order = SequenceOrder(given["num_sequences"], unhex(given["manifest_hash"]))
    return [order.sequence(position) for position in given["positions"]]


def py_lr(given: Given) -> Any:
    section = ScheduleSection(**{k: v for k, v in given.items() if k != "at"})
    return [schedule.lr_nano(section, r) for r in given["at"]]


def py_fp32(given: Given) -> Any:
    ratio = int(given["numerator"]), int(given["denominator"])
    return exact.fp32_bytes(exact.nearest_fp32(*ratio)).hex()


def py_step_constants(given: Given) -> Any:
    made = exact.step_constants(given["lr_nano"], given["wd_nano"])
    return {name: exact.fp32_bytes(getattr(made, name)).hex() for name in ("a", "b")}


def py_init(given: Given) -> Any:
    values = exact.initial_values(
        unhex(given["run"]), given["name"], given["size"], given["std_nano"]
    )
    return b"".join(map(exact.fp32_bytes, values)).hex()


CHECKS = {
    check.__name__: check
    for check in (
        hashing,
        root_vote,
        sigma,
        wanted_slot,
        expected_members,
        phase_due,
        round_decision,
        root_only,
        unavailable_strikes,
        vesting,
        vesting_release,
        vesting_take,
        scaled_reward,
        chain_close,
        chain_event,
        misses,
        return_round,
        stake_to_stay,
        strikes,
        slot_hashes,
        outage,
        hidden_verdict,
        openings_price,
        openings_step,
        eligible_at_open,
        params,
        params_update,
        py_perm,
        py_lr,
        py_fp32,
        py_step_constants,
        py_init,
    )
}
