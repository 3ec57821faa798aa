"""Whole builds: native against sBPF, and the same bytes wherever the build runs."""

import random
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from solders.compute_budget import request_heap_frame, set_compute_unit_limit
from solders.instruction import Instruction
from support.bare_machine import BareMachine
from troth_toolchain import crate, image, remap, sysroot
from troth_toolchain.compilers import CARGO, Compilers
from troth_toolchain.process import run

DIFFERENTIAL = Path(__file__).parent / "differential"
# mode -> iterations per case, as many as fit into 1.4 million compute units.
MODES = {
    "integers": (0, 40),
    "wide integers": (1, 5),
    "floats": (2, 4),
    "collections": (3, 2),
    "calls": (4, 30),
    "memory": (5, 10),
    "text": (6, 2),
}
COMPUTE_UNITS = 1_400_000
HEAP_BYTES = 256 * 1024

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.long(reason="whole builds of the program"),
]


def build(directory, compilers, cache_directory):
    described = crate.describe(directory)
    return crate.compile_bitcode(described, compilers, cache_directory, is_locked=True)


@pytest.fixture(scope="module")
def differential_bitcode(packaged_compilers, cache_directory):
    return build(DIFFERENTIAL, packaged_compilers, cache_directory)


@pytest.fixture(scope="module")
def linked(differential_bitcode):
    return image.link(differential_bitcode)


class Native:
    """The natively compiled functions, asked through a pipe."""

    def __init__(self, target_directory):
        run(
            [CARGO, "build", "--release", "--locked", "--bin", "native"],
            cwd=DIFFERENTIAL,
            env={"CARGO_TARGET_DIR": str(target_directory)},
        )
        self._path = target_directory / "release/native"

    def answers(self, cases):
        text = "".join(f"{seed} {mode} {number}\n" for seed, mode, number in cases)
        done = subprocess.run([self._path], input=text, capture_output=True, text=True, check=True)
        return [int(line) for line in done.stdout.split()]


class Machine(BareMachine):
    """The same functions as a program in the embedded chain's virtual machine."""

    def answer(self, case):
        result = self.run(
            set_compute_unit_limit(COMPUTE_UNITS),
            request_heap_frame(HEAP_BYTES),
            Instruction(self.program, struct.pack("<QBI", *case), []),
        )
        assert not hasattr(result, "err"), (case, str(result.err()), result.meta().logs()[-3:])
        return int.from_bytes(result.return_data().data.ljust(8, b"\0"), "little")


@pytest.fixture(scope="module")
def native(packaged_compilers, cache_directory):
    del packaged_compilers
    return Native(cache_directory / "differential")


def compare(native, machine, mode, num_cases):
    number, iterations = MODES[mode]
    source = random.Random(f"troth {mode}")
    cases = [(source.getrandbits(64), number, iterations) for _ in range(num_cases)]
    differing = [
        (case, expected, found)
        for case, expected in zip(cases, native.answers(cases), strict=True)
        if (found := machine.answer(case)) != expected
    ]
    assert not differing, f"{len(differing)} of {num_cases} differ, first {differing[0]}"


@pytest.mark.parametrize("mode", MODES)
def test_sbpf_computes_what_the_native_machine_computes(native, linked, mode):
    machine = Machine(image.write(linked))
    compare(native, machine, mode, 60)


@pytest.mark.nightly(reason="28 000 cases on four images: minutes; make check has 60 of each")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opt_level", sorted(image.OPT_LEVELS))
def test_sbpf_computes_the_same_at_every_level(native, differential_bitcode, mode, opt_level):
    machine = Machine(image.write(image.link(differential_bitcode, opt_level)))
    compare(native, machine, mode, 1000)


def test_every_mode_is_asked(native):
    text = (DIFFERENTIAL / "src/cases.rs").read_text()
    assert f"NUM_MODES: u8 = {len(MODES)};" in text
    for number, iterations in MODES.values():
        assert native.answers([(7, number, iterations)]) != [7], "a mode that computes nothing"


def test_v3_comes_from_the_same_code(linked):
    v0, v3 = image.write(linked, 0), image.write(linked, 3)
    assert v3[48] == 3
    assert len(v3) < len(v0)


MANIFEST = """\
[package]
name = "elsewhere"
version = "0.1.0"
edition = "2021"

[workspace]

[lib]
crate-type = ["cdylib"]

[dependencies]
hex = "=0.4.3"

[profile.release]
panic = "abort"
overflow-checks = true
codegen-units = 1
"""
LIBRARY = """\
//! A program whose panics name its own source, a registry crate's and std's.
#[path = "ENTRY"]
mod entry;
mod cases {
    pub fn run(seed: u64, mode: u8, iterations: u32) -> u64 {
        let text = hex::encode(seed.to_le_bytes());
        let mut odd = text.clone().into_bytes();
        odd.truncate(mode as usize);
        let decoded = hex::decode(odd).expect("an even number of digits");
        format!("{text:?} {decoded:?}").len() as u64 + [1, 2, 3][iterations as usize]
    }
}
"""


def elsewhere(directory):
    (directory / "src").mkdir(parents=True)
    (directory / "Cargo.toml").write_text(MANIFEST)
    shutil.copy(DIFFERENTIAL / "src/entry.rs", directory / "src")
    (directory / "src/lib.rs").write_text(LIBRARY.replace("ENTRY", "entry.rs"))
    return directory


@dataclass(frozen=True)
class Builders:
    """Two people who build the same sources: where, with which compilers, and with whose cache."""

    directory: Path
    compilers: Compilers
    cache: Path
    other_cache: Path


def assert_equal_images(who: Builders, monkeypatch) -> None:
    """Both build the same bytes, and the bytes name no directory of either."""
    first = elsewhere(who.directory / "one")
    run([CARGO, "generate-lockfile"], cwd=first)
    bitcode = build(first, who.compilers, who.cache)
    registry = remap.cargo_home() / "registry"

    second = elsewhere(who.directory / "a longer path/with spaces/two")
    shutil.copy(first / "Cargo.lock", second)
    home = who.directory / "somebody else"
    for part in ("index", "cache"):
        shutil.copytree(registry / part, home / ".cargo/registry" / part)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("CARGO_HOME", raising=False)
    again = build(second, who.compilers, who.other_cache)

    data = image.write(image.link(bitcode))
    assert image.write(image.link(again)) == data
    for shown in (b"src/lib.rs", b"/registry/hex-0.4.3/", b"/rust/core/src/"):
        assert shown in data
    for hidden in (who.directory, who.cache, registry, Path.home()):
        assert str(hidden).encode() not in data


def test_the_image_does_not_depend_on_directories(
    packaged_compilers, cache_directory, tmp_path, monkeypatch
):
    """Another crate directory and another home: the same bytes. Std comes from one cache."""
    who = Builders(tmp_path, packaged_compilers, cache_directory, cache_directory)
    assert_equal_images(who, monkeypatch)


@pytest.mark.nightly(reason="builds Rust's std a second time: 45 seconds of two cores")
def test_the_image_does_not_depend_on_the_cache(
    packaged_compilers, cache_directory, tmp_path, monkeypatch
):
    """Another cache as well, so that somebody else has built std: the same bytes."""
    who = Builders(tmp_path, packaged_compilers, cache_directory, tmp_path / "another cache")
    assert_equal_images(who, monkeypatch)


def test_the_sysroot_is_built_once(packaged_compilers, cache_directory):
    first = sysroot.ensure(cache_directory, packaged_compilers)
    before = first.stat().st_mtime_ns
    assert sysroot.ensure(cache_directory, packaged_compilers) == first
    assert first.stat().st_mtime_ns == before
    assert any(first.glob("lib/rustlib/sbpf-solana/lib/libstd-*.rlib"))
