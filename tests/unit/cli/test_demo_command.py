"""`troth demo` passes its flags on; its own defaults are the demo's."""

from dataclasses import fields
from pathlib import Path

from troth_client.cli.commands.demo import DemoFlags, demo_options
from troth_client.cli.demo.options import DemoOptions


def test_the_defaults_are_the_demos():
    made, plain = demo_options(DemoFlags()), DemoOptions()
    for field in fields(DemoOptions):
        if field.name != "folder":
            assert getattr(made, field.name) == getattr(plain, field.name), field.name


def test_flags_are_passed_on():
    flags = DemoFlags(
        out=Path("x"),
        trainers=3,
        rounds=2,
        slot_ms=50,
        margin_micro=7,
        kill_round=0,
        seed=5,
        json=True,
    )
    made = demo_options(flags)
    assert (made.folder, made.num_trainers, made.num_rounds) == (Path("x"), 3, 2)
    assert (made.slot_milliseconds, made.margin_micro, made.kill_round) == (50, 7, 0)
    assert made.seed == 5
    assert not made.is_live
    assert demo_options(DemoFlags(no_display=True)).is_live is False
