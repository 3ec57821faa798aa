"""`troth run economics` against the worked values of the research and the formulas by hand."""

import math
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
SOL = 10**9
ROUND = ("--reward", "1", "--cost", "0.8", "--fees", "0")


def asked(cli, *options):
    """The answer; the exit code is 0 if and only if the run has enough of everything."""
    done = cli("run", "economics", *options, "--json")
    assert done.code == (0 if done.json["passes"] else 1), done.err
    assert done.json["passes"] == all(done.json["is_enough"].values())
    return done.json


@pytest.mark.parametrize(
    ("shares", "outside", "d", "stake"),
    [
        (("0.10", "0.95", "0.05"), "0", 0.0903, 7.9),
        (("5%", "90%", "10%"), "0", 0.0405, 18.8),
        (("0.02", "0.9", "0.1"), "0", 0.0162, 48.4),
        (("0.1", "0.95", "0.05"), "50", 0.0903, 562),
    ],
)
def test_the_worked_values(cli, shares, outside, d, stake):
    options = zip(("--sampling", "--power", "--capture"), shares, strict=True)
    given = [part for option in options for part in option] + ["--outside-gain", outside]
    found = asked(cli, *ROUND, *given)
    assert found["detection"] == pytest.approx(d, abs=1e-4)
    assert found["minimum_stake_lamports"] / SOL == pytest.approx(stake, rel=6e-3)
    assert found["first_conviction_stake_lamports"] == 2 * found["minimum_stake_lamports"]
    rounds = math.log(0.05) / math.log(1 - found["detection"])
    assert found["rounds_to_capture"] == math.ceil(rounds)


def test_witnesses(cli):
    found = asked(cli, *ROUND, "--lazy", "0.2", "--seats", "3")
    assert found["laziness_caught"] == pytest.approx(0.96)
    assert found["witness_pay_lamports"] == 8 * SOL // 10
    assert found["witness_penalty_lamports"] == 8 * SOL
    assert found["audit_share"] == pytest.approx(0.3)
    lone = asked(cli, *ROUND, "--seats", "1")
    assert lone["laziness_caught"] == 0
    assert lone["witness_penalty_lamports"] is None


def test_defaults_come_from_the_settings(cli, tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(
        "[chain]\nreward_per_payload = 1_000\nmin_stake_lamports = 90_000\np_base_ppm = 200_000\n"
    )
    found = asked(cli, "--config", file)
    assert found["given"]["p_ppm"] == 200_000
    assert found["given"]["reward"] == 1_000
    assert found["given"]["cost"] == 800
    assert found["given"]["gain"] == 800
    assert found["run"] == {
        "min_stake_lamports": 90_000,
        "witness_fee_lamports": 850,
        "witness_penalty_lamports": 10_000,
    }
    changed = asked(cli, "--config", file, "--set", "chain.p_base_ppm=60000")
    assert changed["given"]["p_ppm"] == 60_000
    more = asked(cli, "--config", file, "--sampling", "25%", "--gain", "2")
    assert more["given"]["p_ppm"] == 250_000
    assert more["given"]["gain"] == 2 * SOL


def test_what_is_never_found_needs_no_finite_stake(cli):
    found = asked(cli, "--power", "0")
    assert found["detection"] == 0
    assert found["rounds_to_capture"] is None
    assert found["minimum_stake_lamports"] is None
    shown = cli("run", "economics", "--power", "0").out
    assert "never" in shown
    assert "no amount is enough" in shown


def test_people_see_what_is_needed_beside_what_the_run_has(cli):
    shown = cli.ok("run", "economics", "--set", "chain.preset=public").out
    lines = {line.rsplit("  ")[0].split("  ")[0].strip(): line for line in shown.splitlines()}
    assert lines["minimum stake"].split()[-5:] == ["0.009004744", "SOL", "1", "SOL", "yes"]
    assert lines["witness pay"].split()[-5:] == ["0.00081", "SOL", "0.00085", "SOL", "yes"]
    assert lines["detection per round"].split()[-2:] == ["7.996", "%"]


SHIPPED = [
    *(("--config", path) for path in sorted(map(str, (REPOSITORY / "configs").glob("*.toml")))),
    ("--config", str(REPOSITORY / "client/troth_cli/demo/demo.toml")),
    *(("--set", f"chain.preset={name}") for name in ("public", "localnet")),
]


@pytest.mark.parametrize("options", SHIPPED, ids=lambda options: options[1].rsplit("/", 1)[-1])
def test_what_we_ship_deters_what_it_should(cli, options):
    """A witness is paid what it costs, and cheating, refusing and idling lose."""
    found = asked(cli, *options)
    assert [name for name, is_enough in found["is_enough"].items() if not is_enough] == []
    assert found["given"]["people"] >= 16
    poor = asked(cli, *options, "--set", "chain.witness_fee=1000")
    assert not poor["is_enough"]["witness_pay"]
    assert found["passes"]
    assert not poor["passes"]


def test_people_read_pass_or_fail_and_what_a_member_can_lose(cli):
    good = cli.ok("run", "economics").out
    assert good.splitlines()[-1] == "pass: cheating, refusing and idling lose"
    assert "0.018 SOL, then 0.036 SOL, then 0.05 SOL" in good, "openings not shown"
    (row,) = [line for line in good.splitlines() if "with the stake to stay" in line]
    assert row.split("stay")[1].strip() == "0.018 SOL, then 0.03 SOL, then 0.03 SOL"
    poor = cli("run", "economics", "--set", "chain.witness_fee=1000")
    assert poor.code == 1
    assert poor.out.splitlines()[-1] == (
        "fail: a verdict costs more than its pay (chain.witness_fee)"
    )


def test_colluders_give_mu_unless_it_is_named(cli):
    alone = asked(cli, "--adversaries", "0")
    assert alone["given"]["capture_ppm"] == 0
    third = asked(cli, "--set", "chain.preset=public", "--adversaries", "0.33")
    assert third["given"]["capture_ppm"] > 400_000
    named = asked(cli, "--adversaries", "0.33", "--capture", "0.05")
    assert named["given"]["capture_ppm"] == 50_000


def test_forging_and_low_rank_are_priced(cli):
    few = asked(cli, *ROUND, "--forged", "0.5%")
    assert few["forging_seen"] == pytest.approx(1 - 0.995**64)
    assert few["low_rank_saves_lamports"] == 8 * SOL // 30
    shown = cli("run", "economics", "--forged", "0.5%").out
    assert "forging 0.5 % of tiles is seen" in shown


def test_the_help_holds_the_formulas(cli):
    shown = " ".join(cli.ok("run", "economics", "--help").out.split())
    for formula in (
        "d = p * q * (1 - mu)",
        "n = ln 0.05 / ln(1 - d)",
        "S = (G + B) / d - R - V",
        "F = max(12 * R, 1.8 * R / q)",
        "q * (F + R) >= G + B",
        "1 - (1 - f)^n",
        "h = 1 - lazy^(seats - 1)",
        "A = max(10 * C, C / h)",
    ):
        assert formula in shown


@pytest.mark.parametrize(
    "option", ["--sampling", "--power", "--capture", "--lazy", "--adversaries", "--forged"]
)
@pytest.mark.parametrize("text", ["-0.1", "1.1", "101%", "nan", "inf", "much", "0.0000001", "%"])
def test_a_share_that_is_none_is_named(cli, option, text):
    error = cli.refused("run", "economics", f"{option}={text}")
    assert error["kind"] == "InputError"
    assert error["subject"] == option
    assert repr(text) in error["found"]


@pytest.mark.parametrize(
    "option", ["--reward", "--cost", "--gain", "--outside-gain", "--unvested", "--fees"]
)
@pytest.mark.parametrize("text", ["-1", "nan", "1e99", "some", "0.0000000001"])
def test_an_amount_that_is_none_is_named(cli, option, text):
    error = cli.refused("run", "economics", f"{option}={text}")
    assert error["kind"] == "InputError"
    assert error["subject"] == option


@pytest.mark.parametrize("seats", [0, -1, 8])
def test_seats_that_no_audit_has_are_named(cli, seats):
    error = cli.refused("run", "economics", f"--seats={seats}")
    assert error["kind"] == "InputError"
    assert error["subject"] == "--seats"


def test_settings_and_a_run_on_chain_exclude_each_other(cli):
    error = cli.refused("run", "economics", "1" * 32, "--set", "chain.p_base_ppm=200000")
    assert error["kind"] == "InputError"
    assert error["found"] == "both"
    assert cli.refused("run", "economics", "no address")["subject"] == "RUN"


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("chain.p_bass_ppm=1", "UnknownKeyError"),
        ("chain.p_base_ppm=1000001", "InvalidValueError"),
        ("chain.min_stake_lamports=1", "ContradictionError"),
    ],
)
def test_settings_that_no_run_could_have_are_refused(cli, setting, kind):
    assert cli.refused("run", "economics", "--set", setting)["kind"] == kind
