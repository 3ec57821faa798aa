"""`troth demo` passes its flags on; its own defaults are the demo's."""

from dataclasses import fields
from pathlib import Path

from troth_cli.commands.demo import DemoFlags, demo_options
from troth_cli.demo.options import DemoOptions
from troth_simulation.cheats.catalogue import CHEATS


def test_the_defaults_are_the_demos():
    made, plain = demo_options(DemoFlags()), DemoOptions()
    for field in fields(DemoOptions):
        if field.name != "folder":
            assert getattr(made, field.name) == getattr(plain, field.name), field.name


def test_flags_are_passed_on():
    flags = DemoFlags(
        out=Path("x"),
        trainers=3,
        witnesses=2,
        cheat="sign-flip",
        rounds=2,
        slot_ms=50,
        margin_micro=7,
        kill_round=0,
        seed=5,
        json=True,
    )
    made = demo_options(flags)
    assert made.folder == Path("x")
    assert made.num_trainers == 3
    assert made.num_rounds == 2
    assert made.slot_milliseconds == 50
    assert made.margin_micro == 7
    assert made.kill_round == 0
    assert made.num_witnesses == 2
    assert made.cheat == "sign-flip"
    assert made.seed == 5
    assert not made.is_live
    assert demo_options(DemoFlags(no_display=True)).is_live is False


def test_help_lists_every_cheat_with_its_story(cli):
    shown = " ".join(cli.ok("demo", "--help").out.split())
    for cheat in CHEATS.values():
        assert f"{cheat.name} {cheat.story}" in shown
    assert "none nobody cheats" in shown


def test_a_validator_that_is_not_there_is_named_before_anything_is_loaded(cli, tmp_path):
    folder, binary = tmp_path / "demo", tmp_path / "no-validator"
    error = cli.refused("demo", "--out", folder, "--validator", binary)
    assert error["kind"] == "ValidatorMissingError"
    assert str(binary) in error["found"]
    assert not folder.exists()
    error = cli.refused("demo", binary, code=2)
    assert "needs --validator before it" in error["found"]


def test_an_unknown_cheat_is_refused_with_the_list(cli, tmp_path):
    error = cli.refused("demo", "--cheat", "no-such-cheat", "--out", tmp_path / "demo")
    assert error["found"] == "'no-such-cheat'"
    assert all(name in error["expected"] for name in CHEATS)
    assert not (tmp_path / "demo").exists()
