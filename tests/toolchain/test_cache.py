"""Finished directories appear at once, whatever happens to the builder."""

import multiprocessing
import os

import pytest
from troth_toolchain import cache


def build(working):
    (working / "part").write_text("done")


def test_a_directory_is_built_once(tmp_path):
    calls = []
    for _ in range(2):
        found = cache.ensure(tmp_path, "x-1", lambda working: calls.append(build(working)))
    assert (found / "part").read_text() == "done"
    assert len(calls) == 1


def test_a_failed_build_leaves_nothing(tmp_path):
    def fail(working):
        build(working)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        cache.ensure(tmp_path, "x-1", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["x-1.lock"]


def _die_while_building(directory):
    def die(working):
        build(working)
        os._exit(9)

    cache.ensure(directory, "x-1", die)


def test_a_killed_build_is_repeated_and_its_rest_removed(tmp_path):
    killed = multiprocessing.get_context("fork").Process(
        target=_die_while_building, args=(tmp_path,)
    )
    killed.start()
    killed.join()
    assert killed.exitcode == 9
    assert not (tmp_path / "x-1").exists()
    assert len(list(tmp_path.glob("building-*"))) == 1
    assert (cache.ensure(tmp_path, "x-1", build) / "part").exists()
    assert not list(tmp_path.glob("building-*"))


def test_keys_depend_on_every_part_and_on_their_borders():
    keys = {cache.key("a", "b"), cache.key("ab"), cache.key("a", b"c"), cache.key("ab", "")}
    assert len(keys) == 4


def test_the_directory_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TROTH_TOOLCHAIN_CACHE", raising=False)
    assert cache.default_directory() == tmp_path / "troth-toolchain"
    monkeypatch.setenv("TROTH_TOOLCHAIN_CACHE", str(tmp_path / "mine"))
    assert cache.default_directory() == tmp_path / "mine"
