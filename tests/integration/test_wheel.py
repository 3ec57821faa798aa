"""The built wheel carries everything that a run needs, and nothing that it must not."""

import zipfile

import pytest
from support.installed import build_wheel

from troth_cli.presets import PRESETS

PACKAGES = {
    "troth_attestation",
    "troth_audit",
    "troth_cli",
    "troth_client",
    "troth_coordinator",
    "troth_localnet",
    "troth_simulation",
}


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    with zipfile.ZipFile(build_wheel(tmp_path_factory.mktemp("wheel"))) as archive:
        return set(archive.namelist())


def test_the_program_and_its_interface_are_inside(wheel_names: set[str]) -> None:
    folder = "troth_coordinator/artifacts/"
    for name in (
        "coordinator_v0.so",
        "coordinator_v3.so",
        "coordinator.idl.json",
        "layout.json",
        "build-info.json",
    ):
        assert folder + name in wheel_names


def test_the_demo_config_is_inside(wheel_names: set[str]) -> None:
    assert "troth_cli/demo/demo.toml" in wheel_names


def test_the_presets_are_inside(wheel_names: set[str]) -> None:
    for name in PRESETS:
        assert f"troth_cli/presets/{name}.toml" in wheel_names


def test_every_package_is_typed(wheel_names: set[str]) -> None:
    for package in PACKAGES:
        assert f"{package}/py.typed" in wheel_names


def test_tests_and_scripts_stay_outside(wheel_names: set[str]) -> None:
    tops = {name.split("/")[0] for name in wheel_names if ".dist-info" not in name}
    assert tops == PACKAGES
