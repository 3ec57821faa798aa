"""The worst case of every instruction: compute units and transaction bytes.

Owns: the scenarios that drive each instruction to its most expensive form, mostly with 64
participants. scripts/gen/compute_units.py writes what `measure` returns; test_costs.py compares.
"""

import dataclasses
from collections.abc import Iterable

from support.program import costs_audits, costs_cases
from support.program.chain import ChainDriver, Cost
from support.program.rounds import SOL, RoundDriver, key
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.event_types_rounds import RoundSettled
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
MANY_PAIRS = 10
"""Accounts that one `close_run` closes here; clients close fewer at once."""
LONGEST_TEXT = "http://" + "x" * 89


def measure() -> dict[str, Cost]:
    """Cost of each instruction, by name, in the order of the program."""
    drivers: list[ChainDriver] = [
        _full_rounds(),
        _silence(),
        _outage(),
        _corrections(),
        _lost_seeds(),
        _small_steps(),
        _reuse(),
    ]
    drivers += [*costs_audits.scenarios(), *costs_cases.scenarios()]
    costs = _worst(drivers)
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


def _worst(drivers: Iterable[ChainDriver]) -> dict[str, Cost]:
    worst: dict[str, Cost] = {}
    for driver in drivers:
        for name, cost in driver.costs.items():
            known = worst.get(name, Cost())
            units, size = max(known.units, cost.units), max(known.size_bytes, cost.size_bytes)
            worst[name] = Cost(units, size)
    return worst


def _full(**changes: int | str) -> RoundDriver:
    """A run with 64 participants, all of them members of its open round."""
    values: dict[str, int | str] = {"capacity": 64, "audit_cap": 7, "max_rounds": 1_000}
    driver = RoundDriver(64, **{**values, **changes})
    driver.start()
    return driver


def _full_rounds() -> RoundDriver:
    """64 members do everything; every close stores a checkpoint; the run pauses and finishes."""
    driver = _full(checkpoint_every=1, max_rounds=4, keep_rounds=2)
    driver.play(2)
    for index in range(16):
        owner, new = driver.owners[index], key("rotated", index)
        driver.chain.airdrop(new.pubkey(), SOL)
        driver.send(make.set_session_key(driver.at, owner.pubkey(), new.pubkey()), owner)
        driver.send(make.set_endpoint(driver.at, owner.pubkey(), "e" * 96), owner)
    authority = driver.authority
    driver.send(make.pause_run(driver.at, authority.pubkey()), authority)
    driver.play(1)
    driver.sessions[:16] = [key("rotated", index) for index in range(16)]
    driver.send(make.resume_run(driver.at, authority.pubkey(), 3), authority)
    driver.play(1)
    driver.cool_down()
    assert driver.run.phase == Phase.FINISHED
    _wind_up(driver)
    return driver


def _wind_up(driver: RoundDriver) -> None:
    """Everybody takes what is theirs; the authority closes everything."""
    for owner in driver.owners:
        driver.send(make.leave_run(driver.at, owner.pubkey()), owner)
    params = driver.params
    driver.chain.advance(3 * (params.unbond_slots + params.vesting_slots))
    late = driver.owners[:MANY_PAIRS]
    for owner in driver.owners:
        claim = make.claim_reward(driver.at, owner.pubkey())
        withdraw = make.withdraw_stake(driver.at, owner.pubkey(), 0)
        # The account of an owner that withdraws first is left to `close_run`.
        for step in (withdraw, claim) if owner in late else (claim, withdraw):
            driver.send(step, owner)
    payer, cranker = driver.authority.pubkey(), driver.cranker.pubkey()
    pairs = [(driver.at.participant(one.pubkey()), one.pubkey()) for one in late]
    pairs += [(driver.at.round(position), payer) for position in range(params.ring)]
    pairs += [(driver.at.checkpoint(round_), cranker) for round_ in range(1, 5)]
    for start in range(0, len(pairs), MANY_PAIRS):
        batch = pairs[start : start + MANY_PAIRS]
        driver.send(make.close_run(driver.at, payer, payer, payer, batch), driver.authority)


def _silence() -> RoundDriver:
    """64 members of whom 32 vanish: they all become inactive, and pay, in one close."""
    driver = _full()
    driver.play(1)
    for _ in range(2):
        driver.commit_all(range(32))
        driver.attest_all(range(32))
        driver.close()
    assert driver.open.members == 2**32 - 1
    driver.commit_all([])
    driver.attest_all([])
    driver.chain.advance(driver.params.close_grace_slots)
    driver.close_void()
    return driver


def _outage() -> RoundDriver:
    """59 of 64 members miss a phase for the third time and pay, while all keys change.

    Too few have committed, so nobody's root decides: the round can only be closed void. New
    parameters come into force at the next open.
    """
    driver = _full(rounds_per_epoch=1, param_delay_slots=10)
    driver.play(1)
    staying, early, late = range(5), range(27), range(27, 64)
    for _ in range(2):
        driver.commit_all(early)
        driver.attest_all([*staying, *late])
        driver.close()
    longer = dataclasses.replace(driver.params, commit_slots=driver.params.commit_slots + 1)
    driver.send(make.update_params(driver.at, driver.authority.pubkey(), longer), driver.authority)
    for index, owner in enumerate(driver.owners):
        rotated = key("rotated", index).pubkey()
        driver.send(make.set_session_key(driver.at, owner.pubkey(), rotated), owner)
    driver.commit_all(staying)
    driver.attest_all()
    driver.run_out()
    driver.chain.advance(driver.params.close_grace_slots)
    settled = driver.close_void().event("RoundSettled")
    assert isinstance(settled, RoundSettled)
    assert settled.inactivated.bit_count() == 59
    return driver


def _corrections() -> RoundDriver:
    """63 members vouched for a payload that nobody can fetch."""
    driver = _full()
    driver.play(1)
    for index in range(32):
        session = driver.sessions[index]
        report = make.report_missing(driver.at, session.pubkey(), index, 0, 63)
        driver.send(report, session)
    assert driver.round(0).struck == 1 << 63
    driver.close_void()
    return driver


def _lost_seeds() -> RoundDriver:
    """The search in a full SlotHashes list; a seed lost twice."""
    driver = RoundDriver(2, keep_rounds=2)
    driver.start()
    driver.play(1)
    driver.chain.advance(505)
    driver.freeze(0)
    driver.commit_all([])
    driver.attest_all([])
    driver.close()
    driver.play(1)
    retarget = make.retarget_seed(driver.at, driver.cranker.pubkey(), 2)
    for _ in range(2):
        driver.chain.advance(600)
        driver.send(retarget, driver.cranker)
    return driver


def _small_steps() -> RoundDriver:
    """Instructions about one participant or one parameter."""
    driver = RoundDriver(3, admission="allowlist", checkpoint_every=1)
    driver.start()
    driver.play(2)
    owner, session = driver.owners[0], driver.sessions[0]
    driver.send(make.top_up_stake(driver.at, owner.pubkey(), 5_000), owner)
    manifest = make.Manifest(1, b"m" * 32, LONGEST_TEXT)
    announce = make.announce_manifest(driver.at, session.pubkey(), owner.pubkey(), 0, manifest)
    driver.send(announce, session)
    payer = driver.authority.pubkey()
    driver.send(make.withdraw_stake(driver.at, owner.pubkey(), 5_000, payer), owner)
    changed = dataclasses.replace(driver.params, commit_slots=150)
    driver.send(make.update_params(driver.at, driver.authority.pubkey(), changed), driver.authority)
    index = driver.add()
    driver.post_ready(index)
    driver.play(1)
    driver.activate(index)
    return driver


def _reuse() -> RoundDriver:
    """An index passes to another owner, with rewards left behind and the longest endpoint."""
    driver = RoundDriver(3, keep_rounds=2, ring=4)
    driver.start()
    driver.play(1)
    former = driver.owners[2]
    driver.send(make.leave_run(driver.at, former.pubkey()), former)
    driver.play(1)
    driver.chain.advance(3 * driver.params.unbond_slots)
    driver.send(make.withdraw_stake(driver.at, former.pubkey(), 0), former)
    driver.commit_all([])
    driver.attest_all([])
    driver.close()
    driver.play(4)
    new = key("successor")
    driver.chain.airdrop(new.pubkey(), 100 * SOL)
    terms = make.JoinTerms(2, 3, key("session of the successor").pubkey(), LONGEST_TEXT)
    driver.send(make.join_run(driver.at, new.pubkey(), terms, former.pubkey()), new)
    return driver
