"""The worst case of every instruction: compute units and transaction bytes.

Owns: the scenarios that drive each instruction to its most expensive form, mostly with 64
participants. scripts/gen/compute_units.py writes what `measure` returns; test_costs.py compares.
"""

import dataclasses
from collections.abc import Iterable

from program import costs_audits, costs_cases
from program.bench import Bench, Cost
from program.rounds import SOL, Stage, key

from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.rules.phase import Phase

SEARCH_TRIES = 16
SEARCH_UNITS = 1_500
"""Finding an address costs this much per bump tried, and the number of tries is luck."""
SEARCHING = frozenset(
    [
        *("admit", "close_round", "create_run", "init_roster", "init_round", "join_run"),
        *("open_audit", "open_case", "post_openings", "request_audit"),
    ]
)
Rows = dict[str, dict[str, int]]
LONGEST_TEXT = "http://" + "x" * 89


def measure() -> dict[str, Cost]:
    """Cost of each instruction, by name, in the order of the program."""
    stages = [_full_rounds(), _silence(), _corrections(), _lost_seeds(), _small_steps(), _reuse()]
    stages += [*costs_audits.scenarios(), *costs_cases.scenarios()]
    costs = _worst(stages)
    return {name: costs[name] for name in program_codec().instructions}


def table() -> Rows:
    """The committed table: what was measured, and the units that a client should ask for."""
    return {
        name: {
            "compute_units": limit_of(name, cost),
            "measured_units": cost.units,
            "transaction_bytes": cost.size_bytes,
        }
        for name, cost in measure().items()
    }


def render(rows: Rows) -> str:
    """The table for people."""
    lines = [f"{'instruction':<18} {'measured':>9} {'limit':>9} {'bytes':>6}"]
    for name, row in rows.items():
        units, limit = row["measured_units"], row["compute_units"]
        lines.append(f"{name:<18} {units:>9} {limit:>9} {row['transaction_bytes']:>6}")
    return "\n".join(lines)


def limit_of(name: str, cost: Cost) -> int:
    """Units to ask for: what was measured, and bad luck in a search for an address."""
    return cost.units + (SEARCH_TRIES * SEARCH_UNITS if name in SEARCHING else 0)


def _worst(stages: Iterable[Bench]) -> dict[str, Cost]:
    worst: dict[str, Cost] = {}
    for stage in stages:
        for name, cost in stage.costs.items():
            known = worst.get(name, Cost())
            units, size = max(known.units, cost.units), max(known.size_bytes, cost.size_bytes)
            worst[name] = Cost(units, size)
    return worst


def _full(**changes: int | str) -> Stage:
    """A run with 64 participants, all of them members of its open round."""
    values: dict[str, int | str] = {"capacity": 64, "audit_cap": 7, "max_rounds": 1_000}
    stage = Stage(64, **{**values, **changes})
    stage.start()
    return stage


def _full_rounds() -> Stage:
    """64 members do everything; every close stores a checkpoint; the run pauses and finishes."""
    stage = _full(checkpoint_every=1, max_rounds=4, keep_rounds=2)
    stage.play(2)
    for index in range(16):
        owner, new = stage.owners[index], key("rotated", index)
        stage.chain.airdrop(new.pubkey(), SOL)
        stage.send(make.set_session_key(stage.at, owner.pubkey(), new.pubkey()), owner)
    authority = stage.authority
    stage.send(make.pause_run(stage.at, authority.pubkey()), authority)
    stage.play(1)
    stage.sessions[:16] = [key("rotated", index) for index in range(16)]
    stage.send(make.resume_run(stage.at, authority.pubkey(), 3), authority)
    stage.play(1)
    stage.cool_down()
    assert stage.run.phase == Phase.FINISHED
    _wind_up(stage)
    return stage


def _wind_up(stage: Stage) -> None:
    """Everybody takes what is theirs; the authority closes everything."""
    for owner in stage.owners:
        stage.send(make.leave_run(stage.at, owner.pubkey()), owner)
    params = stage.params
    stage.chain.advance(3 * (params.unbond_slots + params.vesting_slots))
    for owner in stage.owners:
        stage.send(make.claim_reward(stage.at, owner.pubkey()), owner)
        stage.send(make.withdraw_stake(stage.at, owner.pubkey(), 0), owner)
    payer, cranker = stage.authority.pubkey(), stage.cranker.pubkey()
    pairs = [(stage.at.round(position), payer) for position in range(params.ring)]
    pairs += [(stage.at.checkpoint(round_), cranker) for round_ in range(1, 5)]
    for start in range(0, len(pairs), 10):
        batch = pairs[start : start + 10]
        stage.send(make.close_run(stage.at, payer, payer, batch), stage.authority)


def _silence() -> Stage:
    """64 members of whom 32 vanish: they all become inactive, and pay, in one close."""
    stage = _full()
    stage.play(1)
    for _ in range(2):
        stage.commit_all(range(32))
        stage.attest_all(range(32))
        stage.close()
    assert stage.open.members == 2**32 - 1
    stage.commit_all([])
    stage.attest_all([])
    stage.chain.advance(stage.params.close_grace_slots)
    stage.close_void()
    return stage


def _corrections() -> Stage:
    """63 members vouched for a payload that nobody can fetch."""
    stage = _full()
    stage.play(1)
    for index in range(32):
        session = stage.sessions[index]
        report = make.report_missing(stage.at, session.pubkey(), index, 0, 63)
        stage.send(report, session)
    assert stage.round(0).struck == 1 << 63
    stage.close_void()
    return stage


def _lost_seeds() -> Stage:
    """The search in a full SlotHashes list; a seed lost twice."""
    stage = Stage(2, keep_rounds=2)
    stage.start()
    stage.play(1)
    stage.chain.advance(505)
    stage.freeze(0)
    stage.commit_all([])
    stage.attest_all([])
    stage.close()
    stage.play(1)
    retarget = make.retarget(stage.at, stage.cranker.pubkey(), 2)
    for _ in range(2):
        stage.chain.advance(600)
        stage.send(retarget, stage.cranker)
    return stage


def _small_steps() -> Stage:
    """What concerns one participant or one parameter."""
    stage = Stage(3, admission="allowlist", checkpoint_every=1)
    stage.start()
    stage.play(2)
    owner, session = stage.owners[0], stage.sessions[0]
    stage.send(make.top_up_stake(stage.at, owner.pubkey(), 5_000), owner)
    manifest = make.Manifest(1, b"m" * 32, LONGEST_TEXT)
    announce = make.announce_manifest(stage.at, session.pubkey(), owner.pubkey(), 0, manifest)
    stage.send(announce, session)
    payer = stage.authority.pubkey()
    stage.send(make.withdraw_stake(stage.at, owner.pubkey(), 5_000, payer), owner)
    changed = dataclasses.replace(stage.params, commit_slots=150)
    stage.send(make.update_params(stage.at, stage.authority.pubkey(), changed), stage.authority)
    index = stage.add()
    stage.ready(index)
    stage.play(1)
    stage.activate(index)
    return stage


def _reuse() -> Stage:
    """An index passes to another owner, with rewards left behind and the longest endpoint."""
    stage = Stage(3, keep_rounds=2, ring=4)
    stage.start()
    stage.play(1)
    former = stage.owners[2]
    stage.send(make.leave_run(stage.at, former.pubkey()), former)
    stage.play(1)
    stage.chain.advance(3 * stage.params.unbond_slots)
    stage.send(make.withdraw_stake(stage.at, former.pubkey(), 0), former)
    stage.commit_all([])
    stage.attest_all([])
    stage.close()
    stage.play(4)
    new = key("successor")
    stage.chain.airdrop(new.pubkey(), 100 * SOL)
    terms = make.JoinTerms(2, 3, key("session of the successor").pubkey(), LONGEST_TEXT)
    stage.send(make.join_run(stage.at, new.pubkey(), terms, former.pubkey()), new)
    return stage
