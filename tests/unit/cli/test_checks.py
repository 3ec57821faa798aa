"""The checks before a stake: what was measured against what a run gives time and room for."""

import contextlib
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest
from solders.keypair import Keypair
from support.hostile_rpc import HostileServer, http, reply
from support.run_requests import request
from support.views import BOTH, PARAMS, entry, network

from troth_attestation.verdict import VerdictKind
from troth_cli.slot_time import SlotTime
from troth_cli.workflows import machine_checks
from troth_cli.workflows.checks import CheckResult, Level, Row, refusals, run_checks
from troth_cli.workflows.doctor_rpc import Link, ask_each, check_lag
from troth_cli.workflows.join_checks import Newcomer, check_config, check_time, check_weights
from troth_cli.workflows.machine_checks import Candidate
from troth_cli.workflows.probes import WeightsProbe, measure_slots
from troth_cli.workflows.prospects import Tempo, crowd_with
from troth_cli.workflows.reach_checks import reach_result
from troth_cli.workflows.take_part import slower_by
from troth_client.checkpoint.errors import CheckpointGoneError
from troth_client.model.device import CPU
from troth_client.participant.measuring import Measured, RandomTokens, measure_machine
from troth_client.train.place import Place
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.errors import TrothError
from troth_coordinator.rules.config import ModelSection, RunConfig
from troth_coordinator.rules.view import Role

SLOT = SlotTime(400_000, is_measured=True)
TEMPO = Tempo(SLOT, Fraction(75))
FAST = Measured("cpu", "", 0.1, 0.1, 0.1, VerdictKind.OK, 0.001, 10**9, 10**9, 10**10)
AWAY = "http://127.0.0.1:9"
WINDOW = PARAMS.commit_slots * 0.4


async def reached():
    return CheckResult(Level.OK, "reached")


def candidate(measured=FAST, **changes):
    made = Candidate(None, RunConfig(), BOTH, network(), TEMPO, measured, reached)
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("part", "level"),
    [(0.5, Level.OK), (0.51, Level.WARNING), (1.0, Level.WARNING), (1.01, Level.REFUSED)],
)
async def test_a_payload_needs_less_than_the_window_and_half_of_it_is_good(part, level):
    measured = replace(FAST, payload_seconds=part * WINDOW)
    found = await machine_checks.check_commit(candidate(measured))
    assert found.level is level
    assert found.can_go_on is (level is Level.REFUSED)


async def test_a_judge_that_trains_needs_time_for_both():
    window = PARAMS.verdict_commit_slots * 0.4
    measured = replace(FAST, payload_seconds=0.6 * window, judgement_seconds=0.6 * window)
    both = await machine_checks.check_verdict(candidate(measured))
    assert both.level is Level.REFUSED
    witness = await machine_checks.check_verdict(candidate(measured, role=Role.WITNESS))
    assert witness.level is Level.WARNING
    trainer = await machine_checks.check_verdict(candidate(measured, role=Role.TRAINER))
    assert trainer.level is Level.UNTESTED


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"place": Place(0, 2, 0, "127.0.0.1", 29_500)}, "by rank 0 alone"),
        ({"compiles": True}, "without --compile"),
    ],
)
async def test_a_payload_that_was_measured_slower_than_it_will_be_refuses_nobody(asked, words):
    """Several GPUs are there because one is too slow."""
    made = request(Keypair(), Keypair().pubkey(), **asked)
    slower = candidate(replace(FAST, payload_seconds=1000.0), slower_by=slower_by(made))
    for check in (
        machine_checks.check_commit,
        machine_checks.check_verdict,
        machine_checks.check_load,
    ):
        found = await check(slower)
        assert found.level is Level.WARNING
        assert words in found.found
        assert found.values["seconds"] > found.values["window_seconds"]


async def test_a_judgement_is_measured_as_it_will_be_and_refuses_also_under_torchrun():
    slow = replace(FAST, judgement_seconds=1000.0)
    found = await machine_checks.check_verdict(candidate(slow, slower_by="by rank 0 alone"))
    assert found.level is Level.REFUSED
    witness = candidate(slow, slower_by="by rank 0 alone", role=Role.WITNESS)
    found = await machine_checks.check_verdict(witness)
    assert found.level is Level.REFUSED
    assert "by rank 0 alone" not in found.found


async def test_a_juror_computes_on_one_thread():
    slow = replace(FAST, jury_seconds=PARAMS.jury_commit_slots * 0.4 + 1)
    assert (await machine_checks.check_jury(candidate(slow))).kind == "MachineTooSlowError"


async def test_memory_that_is_nearly_full_is_a_warning():
    tight = replace(FAST, peak_bytes=95, work_bytes=0, room_bytes=100)
    assert (await machine_checks.check_memory(candidate(tight))).level is Level.WARNING
    card = replace(FAST, device_peak_bytes=95, device_room_bytes=100)
    assert (await machine_checks.check_memory(candidate(card))).level is Level.WARNING
    assert (await machine_checks.check_memory(candidate())).level is Level.OK


@pytest.mark.parametrize(
    ("role", "needed", "level"),
    [(BOTH, 95, Level.WARNING), (Role.TRAINER, 60, Level.OK), (Role.WITNESS, 60, Level.OK)],
)
async def test_whoever_trains_and_judges_needs_memory_for_two_gradients(role, needed, level):
    measured = replace(FAST, peak_bytes=60, work_bytes=35, room_bytes=100)
    found = await machine_checks.check_memory(candidate(measured, role=role))
    assert found.values["needed_bytes"] == needed
    assert found.level is level
    card = replace(FAST, device_peak_bytes=50, device_room_bytes=100)
    found = await machine_checks.check_memory(candidate(card, role=role))
    assert found.level is level


async def test_honest_work_that_a_judge_would_not_call_ok_is_refused():
    off = replace(FAST, verdict=VerdictKind.MISMATCH, error=0.4)
    found = await machine_checks.check_bounds(candidate(off))
    assert found.level is Level.REFUSED
    assert found.values["error"] == 0.4
    assert (await machine_checks.check_bounds(candidate())).level is Level.OK


async def test_a_run_whose_pool_is_empty_pays_nothing():
    seen = network()
    poor = replace(seen, run=replace(seen.run, reward_pool=0))
    found = await machine_checks.check_pay(candidate(view=poor))
    assert found.level is Level.WARNING
    assert "pool is empty" in found.advice
    rich = replace(seen, run=replace(seen.run, reward_pool=10**12))
    assert (await machine_checks.check_pay(candidate(view=rich))).level is Level.OK


async def test_a_machine_that_failed_leaves_the_other_checks_untested():
    failed = CheckpointGoneError("a gradient", "no memory", "Buy some.")
    rows = await run_checks(machine_checks.CHECKS[2:6], candidate(failed))
    assert {row.result.level for row in rows} == {Level.UNTESTED}
    device = await machine_checks.check_device(candidate(failed))
    assert device.level is Level.REFUSED
    assert device.can_go_on is False


def newcomer(weights, **run):
    seen = network()
    seen = replace(seen, run=replace(seen.run, **run))
    asked = SimpleNamespace(settings=SimpleNamespace(config=RunConfig()))
    return Newcomer(asked, BOTH, None, None, seen, 0, weights, TEMPO, lambda *_: None)


LAST = PARAMS.join_until_round
THIRTY_SECONDS = 30.0


@pytest.mark.parametrize(
    ("rounds", "level"), [(1, Level.OK), (5, Level.WARNING), (10, Level.REFUSED)]
)
async def test_the_way_must_be_shorter_than_the_time_in_which_joining_is_possible(rounds, level):
    at = LAST - 9  # ten rounds are left, this one among them
    weights = WeightsProbe(at, int(rounds * THIRTY_SECONDS * 1e6), 1e6)
    found = await check_time(newcomer(weights, round=at))
    assert found.values["rounds_to_join"] == 10
    assert found.level is level


async def test_weights_that_nobody_has_are_refused_and_the_time_is_unknown():
    gone = newcomer(CheckpointGoneError("somebody", "nobody", "Later."), round=LAST - 9)
    found = await check_weights(gone)
    assert found.level is Level.REFUSED
    assert found.can_go_on is True
    assert (await check_time(gone)).level is Level.UNTESTED


async def test_an_error_is_a_row_and_hides_no_other_check():
    async def broken(_subject):
        raise CheckpointGoneError("somebody", "nobody", "Later.")

    async def fine(_subject):
        return CheckResult(Level.OK, "fine")

    rows = await run_checks((("first", broken), ("second", fine)), None)
    assert [row.result.level for row in rows] == [Level.REFUSED, Level.OK]
    assert rows[0].result.kind == "CheckpointGoneError"


def names_under(root):
    return {root.__name__}.union(*map(names_under, root.__subclasses__()))


async def test_each_kind_of_a_refusal_is_an_error_that_exists():
    async def unreached():
        return reach_result(False)

    hour = 3600.0
    slow = replace(
        FAST,
        payload_seconds=hour,
        judgement_seconds=hour,
        jury_seconds=hour,
        verdict=VerdictKind.MISMATCH,
    )
    rows = await run_checks(machine_checks.CHECKS[2:9], candidate(slow, reach=unreached))
    late = newcomer(WeightsProbe(LAST, int(hour * 1e6), 1e6), round=LAST)
    other = SimpleNamespace(config_hash=lambda: bytes(32), manifest_digest=lambda: bytes(32))
    foreign = newcomer(None, config_hash=bytes([1] * 32))
    foreign = replace(foreign, request=SimpleNamespace(settings=SimpleNamespace(config=other)))
    results = [row.result for row in rows] + [await check_time(late), await check_config(foreign)]
    kinds = {found.kind for found in results if found.level is Level.REFUSED}
    assert kinds == {
        "BoundsError",
        "ConfigMismatchError",
        "MachineTooSlowError",
        "TooLateError",
        "UnreachableError",
    }
    assert kinds <= names_under(TrothError)


def test_anyway_overrides_only_what_it_may():
    soft = Row("soft", CheckResult(Level.REFUSED, "slow", can_go_on=True))
    hard = Row("hard", CheckResult(Level.REFUSED, "poor"))
    assert refusals([soft, hard]) == [soft, hard]
    assert refusals([soft, hard], anyway=True) == [hard]


class SlotClock:
    """A clock, and a node whose slots take 0.5 s of it; `stops` is its last slot."""

    def __init__(self, stops=10**9):
        self.now, self.num_asked, self._stops = 0.0, 0, stops

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds

    async def get_slot(self):
        self.num_asked += 1
        return min(self._stops, int(self.now / 0.5))


async def test_slots_are_measured_within_some_seconds_and_few_requests():
    clock = SlotClock()
    found = await measure_slots(clock, clock, clock.sleep)
    assert found.is_measured
    assert 450_000 <= found.micros <= 550_000
    assert clock.num_asked <= 30


async def test_a_chain_that_stands_still_has_the_stated_slots():
    clock = SlotClock(stops=0)
    found = await measure_slots(clock, clock, clock.sleep)
    assert not found.is_measured
    assert found.micros == 400_000


@pytest.mark.parametrize(
    ("seconds", "level"),
    [(3, Level.OK), (90, Level.WARNING), (-90, Level.WARNING), (10**8, Level.UNTESTED)],
)
async def test_a_lag_behind_the_clock(seconds, level):
    data = bytes(32) + (1_800_000_000).to_bytes(8, "little", signed=True)

    class Node:
        async def get_accounts(self, _addresses):
            return 1, [SimpleNamespace(data=data)]

    link = Link([Node()], None, None, lambda: 1_800_000_000.0 + seconds)
    assert (await check_lag(link)).level is level


@contextlib.asynccontextmanager
async def node_at(slot, drip_seconds=0):
    """A node on a socket that knows nothing but one slot."""
    async with (
        HostileServer(lambda request: http(reply(slot, request)), drip_seconds) as server,
        HttpRpc(server.url) as node,
    ):
        yield node


@pytest.mark.parametrize(("slots", "level"), [(105, Level.OK), (200, Level.WARNING)])
async def test_a_lag_between_two_nodes(slots, level):
    async with node_at(100) as first, node_at(slots) as second:
        assert (await check_lag(Link([first, second], None, None))).level is level


async def test_nodes_that_are_apart_are_named_with_their_slots():
    async with node_at(100) as first, node_at(101) as second, node_at(10**6) as ahead:
        found = await check_lag(Link([first, second, ahead], None, None))
    at = f"{first.name} at 100, {second.name} at 101, {ahead.name} at 1000000"
    assert found.found == f"999900 slots apart: {at}"


async def test_nodes_keep_the_order_in_which_they_were_named():
    """The first is the preferred one, also where it takes longer to answer."""
    async with node_at(100, drip_seconds=0.001) as slow, node_at(200) as fast:
        asked = await ask_each([slow, fast], HttpRpc.get_slot)
    assert list(asked.answers) == [slow, fast]


async def test_a_node_that_has_no_answer_is_named_beside_the_answers_of_the_others():
    async with node_at(100) as first, HttpRpc(f"{AWAY}/key", name=AWAY) as silent:
        found = await check_lag(Link([silent, first], None, None))
    assert found.level is Level.WARNING
    assert found.found.startswith(f"0 slots apart; {AWAY}: ")
    assert "another node" in found.advice


def test_the_newcomer_counts_among_the_members():
    seen = replace(network(), entries=(entry(1), entry(2)))
    assert crowd_with(seen, BOTH, is_member=False).trainers == 3
    assert crowd_with(seen, BOTH, is_member=True).trainers == 2
    assert crowd_with(seen, Role.WITNESS, is_member=False).trainers == 2


def test_this_machine_is_measured_on_random_tokens():
    model = ModelSection(hidden_size=64, intermediate_size=64, num_hidden_layers=1)
    config = RunConfig(model=model)
    tokens = RandomTokens(config)
    assert (tokens.sequences([3]) == tokens.sequences([3])).all()
    assert tokens.sequences([3, 4]).max() < model.vocab_size
    ticks = iter(range(100))
    found = measure_machine(config, CPU, clock=lambda: float(next(ticks)))
    assert found.verdict is VerdictKind.OK
    assert found.payload_seconds == 2, "a gradient is one tick, and so is the rest"
    assert found.jury_seconds == 2
    assert found.judgement_seconds == 2
    assert 0 <= found.work_bytes < found.peak_bytes < found.room_bytes
