"""`troth join` checks before a stake moves: one run with every reason, and the balance after it."""

import shutil

import pytest
from support.network import SOL, refused_check
from support.portions import portions

pytestmark = pytest.mark.processes
CHECKS = ["program", "config", "data", "balance", "place", "weights", "time"]
MACHINE = [
    "device",
    "disk",
    "memory",
    "commit",
    "verdict",
    "jury",
    "load",
    "bounds",
    "reach",
    "pay",
]
ROOMY = ("chain.commit_slots=4000", "chain.attest_slots=4000")
ROOMY += ("chain.verdict_commit_slots=4000", "chain.jury_commit_slots=4000")
ROOMY += ("chain.vesting_slots=90000", "chain.unbond_slots=90000")
SLOW = ("chain.commit_slots=1", "train.sequences_per_payload=128", "train.microbatch_sequences=8")


def strict(bench, run, key, *more):
    """The arguments of a join that nothing overrides."""
    return (*bench.join_arguments(run, key, anyway=()), *more)


def by_name(checks):
    return {one["check"]: one for one in checks}


def test_all_checks_are_told_and_nothing_is_paid(bench):
    run = bench.create(*ROOMY)
    found = bench.cli.json(*strict(bench, run, "a", "--check"))
    checks = by_name(found["checks"])
    assert list(checks) == [*CHECKS, *MACHINE]
    not_ok = {name: one["level"] for name, one in checks.items() if one["level"] != "ok"}
    assert not_ok == {"reach": "not tested"}, checks
    assert checks["commit"]["values"]["seconds"] > 0
    assert checks["verdict"]["values"]["window_seconds"] > checks["verdict"]["values"]["seconds"]
    assert checks["bounds"]["values"]["verdict"] == "ok"
    assert checks["pay"]["values"]["reward_lamports"] > 0
    assert bench.balance("a") == 10 * SOL
    assert bench.cli.json(*bench.of_run("status", run=run))["participants"] == []


@pytest.mark.parametrize(
    ("command", "role", "found"),
    [
        ("join", ("--role", "trainer"), {1}),
        ("join", ("--role", "both"), {1, 2}),
        ("witness", (), {1, 2}),
    ],
)
def test_a_machine_is_measured_in_the_microbatch_that_it_will_take(bench, command, role, found):
    """The run has two sequences at once; only a juror's gradient needs them."""
    _, *arguments = strict(bench, bench.create(*ROOMY), "a", "--check", "--micro-batch", "1")
    with portions() as sizes:
        checks = by_name(bench.cli.json(command, *arguments, *role)["checks"])
    assert set(sizes) == found
    assert sizes.count(2) == (2 in found), "the one that is compared with"
    assert checks["bounds"]["values"]["verdict"] == "ok"


def test_a_machine_that_cannot_keep_up_is_refused_without_anyway(bench):
    run = bench.create(*SLOW)
    error = bench.cli.refused(*strict(bench, run, "a", "--check"))
    commit = by_name(error["checks"])["commit"]
    assert commit["level"] == "refused"
    assert commit["kind"] == "MachineTooSlowError"
    assert "--anyway" in error["next_step"]
    assert bench.balance("a") == 10 * SOL
    found = bench.cli.json(*strict(bench, run, "a", "--check", "--anyway"))
    assert by_name(found["checks"])["commit"]["level"] == "refused"


def test_a_payload_that_will_be_made_faster_than_it_was_measured_refuses_nobody(bench):
    run = bench.create(*SLOW)
    arguments = strict(bench, run, "a", "--check", "--compile", "--anyway")
    commit = by_name(bench.cli.json(*arguments)["checks"])["commit"]
    assert commit["level"] == "warning"
    assert commit["found"].endswith(" without --compile")


def test_missing_and_changed_shards_are_counted_before_the_device_is_asked(bench, tmp_path):
    run = bench.create()
    data = tmp_path / "broken"
    shutil.copytree(bench.data, data)
    shard = next(path for path in sorted(data.iterdir()) if path.name.startswith("train"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"\xff")
    arguments = list(strict(bench, run, "a"))
    arguments[arguments.index("--data") + 1] = data
    error = bench.cli.refused(*arguments)
    found = refused_check(error, "data")
    assert shard.name in found["found"]
    assert found["values"]["missing"] == 1
    assert list(by_name(error["checks"])) == CHECKS
    assert "--anyway" not in error["next_step"]
    shard.unlink()
    assert refused_check(bench.cli.refused(*arguments), "data")["kind"] == "ShardMissingError"
    assert bench.balance("a") == 10 * SOL


def test_every_reason_is_told_at_once(bench):
    run = bench.create("chain.admission=allowlist")
    bench.key("poor", 0.2)
    bench.create("schedule.lr_nano=1", name="other")
    arguments = bench.join_arguments(run, "poor", name="other", anyway=())
    error = bench.cli.refused(*arguments)
    levels = {name: one["level"] for name, one in by_name(error["checks"]).items()}
    assert levels["config"] == levels["balance"] == levels["place"] == "refused"
    assert by_name(error["checks"])["place"]["kind"] == "NotAdmitted"
    assert bench.balance("poor") == SOL // 5


def test_nothing_is_fetched_for_a_join_that_the_chain_refuses(bench):
    """Nobody serves the data: a fetch would last a minute and have an error of its own."""
    run = bench.create()
    bench.key("dry", 0.2)
    arguments = list(strict(bench, run, "dry"))
    at = arguments.index("--data")
    del arguments[at : at + 2]
    error = bench.cli.refused(*arguments)
    assert refused_check(error, "balance")["kind"] == "FundsError"
    assert list(by_name(error["checks"])) == [one for one in CHECKS if one != "data"]
    state = arguments[arguments.index("--state") + 1]
    assert not (state / "data").exists()
