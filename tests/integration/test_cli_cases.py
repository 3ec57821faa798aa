"""`troth witness`, `join --role both`, `case`, `status`: audits and cases by real processes.

The decisions of a jury on each kind of claim are tested on the program (tests/program) and in one
process. Here we test the commands of a person at a terminal, their output, and their refusals.
"""

import pytest
from support.cli import Cli
from support.demos import small_config
from support.network import SOL, Bench, prepare_text, processes, start
from support.processes import SLOT, Participants
from support.waiting import wait_for

from troth_cli.demo.options import DemoOptions
from troth_cli.demo.setup import start_chain
from troth_cli.view.amounts import sol
from troth_client.telemetry.events import EventList
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions
from troth_simulation.cheats.catalogue import FREE_RIDER

pytestmark = pytest.mark.processes

RING, NUM_ROUNDS = 6, 9
RULES = ("commit_slots=600", "attest_slots=600", "warmup_slots=1500", "vesting_slots=40000")
RULES += ("unbond_slots=40000", "p_new_ppm=1000000", "audit_cap=2")
RULES += ("openings_slots=3000", "verdict_commit_slots=3000", "verdict_reveal_slots=3000")
RULES += ("jury_commit_slots=3000", "jury_reveal_slots=3000")
RULES += (f"ring={RING}", "appeal_slots=100", "breaker_slots=100")
CASE_SLOTS = 2_500
RULES += (f"case_slots={CASE_SLOTS}",)
TRAINERS = ("a", "b", "c")
SECONDS = 240
LONG = {"appeal_slots": 600, "breaker_slots": 600}


@pytest.fixture
def cli(capsys):
    return Cli(capsys)


@pytest.fixture
def bench(cli, tmp_path):
    launcher = start()
    yield Bench(cli, launcher, tmp_path, prepare_text(tmp_path))
    launcher.stop()


@pytest.mark.long(reason="a whole run of processes; make test has the demo with a conviction")
def test_work_is_judged_and_a_case_with_a_bond_that_fails_costs_it(bench):
    settings = [f"chain.{rule}" for rule in RULES]
    rounds = (f"schedule.rounds={NUM_ROUNDS}", "schedule.warmup_rounds=0")
    run = bench.create(*settings, *rounds, fund="1")
    bench.key("x")
    with processes(bench) as begin:
        people = [begin((*bench.join_arguments(run, n), "--role", "both"), n) for n in TRAINERS]
        people.append(begin(bench.witness_arguments(run, "w"), "w"))
        cleared = wait_for(lambda: cleared_audits(bench, run), SECONDS)[0]
        refuse_bad_claims(bench, run, cleared)
        can_be_opened(bench, run, cleared)
        accuse(bench, run, cleared)
        wait_for(lambda: show(bench, run, cleared)["case_outcome"], SECONDS)
        judged = show(bench, run, cleared)
        refuse_what_left_the_ring(bench, run)
        # Members that have ended close nothing any more.
        wait_for(lambda: about(judged) not in open_ones(bench, run), SECONDS)
        let_accusations_expire(bench, run)
        ends = [person.end() for person in people]
    assert [code for code, _ in ends] == [0] * 4, [person.notes()[-900:] for person in people]
    assert_bond_is_lost(bench, run, judged)
    over_is_listed(bench, run, judged)
    for _, end in ends:
        assert_duties_are_told(end)
    assert bench.cli.json(*bench.of_run("status", run=run))["bonds_lamports"] == 0


def cleared_audits(bench, run):
    """Cleared audits of rounds that are still in the ring when the run has ended."""
    cases = bench.cli.json(*bench.of_run("case", "list", run=run))["cases"]
    late = [case for case in cases if case["round"] > NUM_ROUNDS - RING]
    return [case for case in late if (case["stage"], case["outcome"]) == ("settled", "cleared")]


def show(bench, run, case):
    return bench.cli.json(*bench.of_run("case", "show", run=run), *which(case))


def which(case):
    return "--round", case["round"], "--target", case["target"]


def open_case(run, bench, case, key, *more):
    return (*bench.of_run("case", "open", run=run, key=key), *which(case), *more)


def refuse_bad_claims(bench, run, case):
    """Nothing is sent where the claim cannot succeed, and the error says why."""
    bench.key("poor", amount=0.001)
    poor = bench.cli.refused(*open_case(run, bench, case, "poor", "--yes"))
    assert poor["kind"] == "FundsError"
    assert "bond" in poor["expected"]
    assert poor["found"] == "0.001 SOL"

    stranger = bench.cli.refused(*open_case(run, bench, case | {"target": 9}, "x", "--yes"))
    assert stranger["kind"] == "CaseError"
    assert stranger["found"] == "9"
    assert "troth status" in stranger["next_step"]

    owners = {
        one["index"]: one["owner"]
        for one in bench.cli.json(*bench.of_run("status", run=run))["participants"]
    }
    own = next(name for name in (*TRAINERS, "w") if is_owner(bench, name, owners[case["target"]]))
    itself = bench.cli.refused(*open_case(run, bench, case, own, "--yes"))
    assert itself["found"] == "its own"

    future = bench.cli.refused(*open_case(run, bench, case | {"round": 999}, "x", "--yes"))
    assert "a closed round" in future["expected"]
    subject = bench.cli.refused(*open_case(run, bench, case, "x", "--subject", "1"))
    assert "possession" in subject["expected"]
    kind = bench.cli.refused(*open_case(run, bench, case, "x", "--kind", "magic"))
    assert "possession" in kind["expected"]
    nobody = bench.cli.refused(*bench.of_run("case", "show", run=run), "--round=0", "--target=9")
    assert nobody["kind"] == "CaseError"
    assert "troth case list" in nobody["next_step"]


def is_owner(bench, name, owner):
    return str(bench.address(name)) == owner


def can_be_opened(bench, run, case):
    """The cleared work is listed with its window and its money, and so are the exact kinds."""
    words = (*bench.of_run("case", "list", run=run), "--openable")
    listed = bench.cli.json(*words)
    wanted = {name: case[name] for name in ("round", "target", "kind")}
    (work,) = [one for one in listed["openable"] if wanted.items() <= one.items()]
    assert 0 < work["slots_left"] <= CASE_SLOTS
    assert work["until_slot"] >= listed["slot"]
    assert work["bounty_lamports"] >= SOL // 10 * 50 * 5 // 10_000, "5 % of half the stake"
    kinds = {one["kind"] for one in listed["openable"]}
    assert kinds == {"work", "payload", "root", "possession"}
    text = bench.cli.ok(*words).out
    assert "a case could be opened about" in text
    assert "seconds" in text, "slots of 20 ms"
    assert sol(listed["bond_lamports"]) in text
    own = bench.cli.json(*words, "--key", bench.key(TRAINERS[0]))["openable"]
    index = next(
        one["index"]
        for one in bench.cli.json(*bench.of_run("status", run=run))["participants"]
        if is_owner(bench, TRAINERS[0], one["owner"])
    )
    assert index not in {one["target"] for one in own}


def about(case):
    return f"round {case['round']}, target {case['target']}"


def open_ones(bench, run):
    listed = bench.cli.json(*bench.of_run("case", "list", run=run))["cases"]
    return {about(one) for one in listed}


def over_is_listed(bench, run, judged):
    """A closed case is there with --all, and only there."""
    words = bench.of_run("case", "list", run=run)
    closed = bench.cli.json(*words, "--all")["closed"]
    assert about(judged) not in open_ones(bench, run)
    found = {about(one): one for one in closed}[about(judged)]
    assert found["case_outcome"] == "acquitted"
    assert found["stage"] == "closed"
    assert "over" in bench.cli.ok(*words, "--all").out


def accuse(bench, run, case):
    """First only the price, then the case; a second one and an appeal against it are refused."""
    before = bench.balance("x")
    price = bench.cli.json(*open_case(run, bench, case, "x"))
    assert price["is_open"] is False
    assert bench.balance("x") == before
    opened = bench.cli.json(*open_case(run, bench, case, "x", "--yes"))
    assert opened["is_open"]
    assert before - bench.balance("x") == opened["bond_lamports"] + opened["fee_lamports"]
    assert bench.cli.json(*bench.of_run("status", run=run))["bonds_lamports"] > 0
    second = bench.cli.refused(*open_case(run, bench, case, "x", "--yes"))
    assert second["kind"] == "CaseError"
    assert "in stage" in second["found"]
    appeal = (*bench.of_run("case", "appeal", run=run, key="x"), *which(case))
    assert bench.cli.refused(*appeal)["kind"] == "ProgramRefusedError"


def refuse_what_left_the_ring(bench, run):
    status = bench.of_run("status", run=run)
    wait_for(lambda: bench.cli.json(*status)["round"] > RING, SECONDS)
    gone = {"round": 0, "target": 0}
    error = bench.cli.refused(*open_case(run, bench, gone, "x", "--yes", "--kind", "root"))
    assert error["kind"] == "CaseError"
    assert error["expected"].startswith("a closed round from ")
    assert error["found"] == "0"


def let_accusations_expire(bench, run):
    """When the run is over, members stay as long as they can be accused: pass that time at once."""
    status = bench.of_run("status", run=run)
    wait_for(lambda: bench.cli.json(*status)["phase"] == "finished", SECONDS)
    cases = bench.of_run("case", "list", run=run)
    open_stages = ("commit", "reveal", "jury_commit", "jury_reveal")
    wait_for(
        lambda: all(case["stage"] not in open_stages for case in bench.cli.json(*cases)["cases"]),
        SECONDS,
    )
    bench.launcher.advance(CASE_SLOTS)


def assert_bond_is_lost(bench, run, judged):
    """Acquitted: the bond pays the committee; of the rest the target gets half, half burns."""
    assert judged["case_outcome"] == "acquitted"
    assert judged["challenger"] == str(bench.address("x"))
    posted, *parts = judged["bond"].values()
    assert posted == judged["bond_lamports"] == sum(parts) > 0
    bond = judged["bond"]
    assert bond["spent_lamports"] > 0
    assert 0 <= bond["burned_lamports"] - bond["acquitted_lamports"] <= 1
    assert bond["returned_lamports"] == 0
    assert judged["taken_lamports"] == 0
    assert {juror["verdict"] for juror in judged["jurors"]} == {"ok"}
    told = [event["event"] for event in judged["history"]]
    for name in ("AuditOpened", "VerdictRevealed", "CaseOpened", "JuryDrawn", "CaseSettled"):
        assert name in told
    revealed = [one for one in judged["history"] if one["event"] == "JurorVoteRevealed"]
    votes = {one["index"]: one["verdict"] for one in revealed}
    assert votes == {juror["index"]: juror["verdict"] for juror in judged["jurors"]}
    assert bench.balance("x") < 10 * SOL - judged["bond_lamports"]


def assert_duties_are_told(end):
    duties = end["duties"]
    assert end["is_finished"]
    assert duties["num_judged"] == duties["verdicts"]["ok"] > 0
    assert duties["num_revealed"] == duties["num_judged"] + duties["num_cases"]
    assert duties["rewards_lamports"] > 0
    assert duties["findings"] == []


@pytest.fixture
def participants(tmp_path):
    """Four honest participants, a witness and a free-rider; convictions wait long for appeals."""
    with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=SLOT)) as launcher:
        start_chain(launcher, EventList())
        options = DemoOptions(
            folder=tmp_path / "run",
            config=small_config(tmp_path / "small.toml", **LONG),
            num_rounds=16,
            slot_milliseconds=SLOT,
        )
        with Participants(options, launcher) as made:
            yield made


@pytest.mark.long(reason="a second whole run of processes")
def test_a_conviction_is_appealed_by_the_convicted_only_and_reversed_by_the_council(
    cli, participants
):
    run, rpc = str(participants.created.run), ("--rpc", participants.launcher.rpc_url)
    keys = participants.options.folder / "keys"

    def convictions():
        cases = cli.json("case", "list", run, *rpc)["cases"]
        return [case for case in cases if case["is_conviction"] and case["taken_lamports"]]

    case = wait_for(convictions, SECONDS)[0]
    status = cli.json("status", run, *rpc)
    waiting = case["taken_lamports"] - case["split"]["jurors_lamports"]
    assert status["escrow_lamports"] >= waiting > 0
    assert any(one["taken_lamports"] for one in status["accusations"])
    assert "open accusations" in cli.ok("status", run, *rpc).out

    def appeal(name):
        return ("case", "appeal", run, *rpc, *which(case), "--key", keys / f"{name}.json")

    other = cli.refused(*appeal("trainer-0"))
    assert other["kind"] == "ProgramRefusedError"
    assert all(other[part] for part in ("expected", "found", "next_step"))
    assert cli.json(*appeal(FREE_RIDER.name))["fee_lamports"] > 0
    reverse = ("case", "reverse", run, *rpc, *which(case), "--key")
    early = cli.refused(*reverse, keys / "authority.json")
    assert early["kind"] == "ProgramRefusedError"
    assert cli.refused(*appeal(FREE_RIDER.name))["kind"] == "ProgramRefusedError"
    seen = cli.json("case", "show", run, *rpc, *which(case))
    assert "appealed" in seen["flags"]
    assert not seen["is_paid_out"]

    assert "council" in cli.refused(*reverse, keys / "trainer-0.json")["expected"]
    participants.launcher.advance(LONG["appeal_slots"])
    wait_for(lambda: cli(*reverse, keys / "authority.json").code == 0, SECONDS)
    seen = cli.json("case", "show", run, *rpc, *which(case))
    assert "reversed" in seen["flags"]
    assert not seen["is_conviction"]
    assert seen["split"]["returned_lamports"] == case["taken_lamports"]
    slashed = cli.json("status", run, *rpc)["slashes"]
    assert case["round"] not in [row["round"] for row in slashed]
