"""`troth doctor` without a chain: whatever is broken is a row of its table, and hides no other."""

import sys
from importlib.abc import MetaPathFinder

import pytest

from troth_cli.workflows.reach_checks import ask_holders

NOBODY = "http://127.0.0.1:9"
DEVICE_CHECKS = "troth_cli.workflows.doctor_machine"


@pytest.fixture
def examined(cli, tmp_path):
    def examine(*arguments, state=tmp_path / "state"):
        given = ("--rpc", NOBODY, *arguments, "--state", state, "--json")
        done = cli("doctor", *given)
        assert done.code == 1, done
        return {one["check"]: one for one in done.json["checks"]}

    return examine


def test_an_address_that_is_none_of_a_node_is_a_row(examined):
    checks = examined("--rpc", "ftp://node.example/secret", "--device", "cpu")
    assert checks["rpc"]["level"] == "problem"
    assert checks["rpc"]["found"].endswith("ftp://node.example")
    assert checks["slots"]["level"] == "not tested"
    assert checks["device"]["level"] == "ok"


def test_every_node_without_an_answer_is_named_without_its_key(examined):
    checks = examined("--rpc", "http://127.0.0.1:9/secret-key", "--device", "cpu")
    named = [part.rpartition(": ")[0] for part in checks["rpc"]["found"].split("; ")]
    assert sorted(named) == ["http://127.0.0.1:9", "http://127.0.0.1:9 (2)"]


def test_a_folder_that_cannot_even_be_looked_for_is_a_row(examined, tmp_path):
    checks = examined("--device", "cpu", state=tmp_path / ("long" * 100))
    assert checks["disk"]["level"] == "problem"
    assert "too long" in checks["disk"]["found"]


def test_a_device_that_is_there_and_does_not_work_is_a_row(examined, monkeypatch):
    def broken(_device):
        raise RuntimeError("CUDA error: all devices are busy or unavailable\nCompile with ...")

    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.get_device_capability", broken)
    checks = examined("--device", "auto")
    assert checks["device"]["level"] == "problem"
    assert checks["device"]["found"] == "CUDA error: all devices are busy or unavailable"
    assert "--device cpu" in checks["device"]["advice"]


HINTS = "[hints]\ndevice = '{}'\nprecision = 'bf16'\n[model]\nhidden_size = 64\n"
SMALL = "intermediate_size = 64\nnum_hidden_layers = 1\n"


@pytest.fixture
def hints(tmp_path):
    def write(device):
        path = tmp_path / "hints.toml"
        path.write_text(HINTS.format(device) + SMALL)
        return path

    return write


@pytest.mark.cuda
def test_the_device_is_the_one_that_join_takes_from_the_config(examined, hints):
    """Here one that no machine has; it looked at another."""
    checks = examined("--config", hints("cuda:99"))
    assert checks["device"]["level"] == "problem"
    assert checks["device"]["needed"] == "the device 'cuda:99'"


def test_a_device_that_is_named_stands_before_that_of_the_config(examined, hints):
    checks = examined("--config", hints("mps"), "--device", "cpu")
    assert checks["device"]["found"].startswith("cpu, bf16 passes"), "the precision is the config's"


class Unloadable(MetaPathFinder):
    """An installation of PyTorch whose libraries are not all there."""

    def find_spec(self, name, _path, _target=None):
        if name == DEVICE_CHECKS:
            raise OSError("libcudnn.so.9: cannot open shared object file")


def test_an_installation_that_cannot_be_loaded_is_a_row(examined, monkeypatch):
    monkeypatch.delitem(sys.modules, DEVICE_CHECKS, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Unloadable(), *sys.meta_path])
    checks = examined()
    assert checks["device"]["level"] == "problem"
    assert "libcudnn.so.9" in checks["device"]["found"]


async def test_an_address_that_a_stranger_announced_is_no_error_of_ours():
    """The chain takes any printable text of 96 bytes."""
    assert await ask_holders(["http://[bad", "http://x:99999", "::"], is_guarded=False) is None
