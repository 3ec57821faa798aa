"""The scripts for the day when a GPU is at hand run today, without one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts/gpu"


def output_of(script, *arguments, interpret):
    run = subprocess.run(
        [sys.executable, SCRIPTS / script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TRITON_INTERPRET": interpret, "OMP_NUM_THREADS": "1"},
    )
    return run.returncode, run.stdout, run.stderr


@pytest.mark.long(reason="compiles for five GPUs")
def test_the_kernels_compile_for_a_gpu_and_fuse_only_in_the_transform():
    code, out, err = output_of("compiled.py", "--arch", "90", "--k", "8", interpret="0")
    assert code == 0, err
    encode, first, apply, chunks, pairs = (line.split() for line in out.splitlines()[1:])
    assert encode[:3] == ["encode", "k=8", "90"]
    assert first[:3] == ["first", "k=8", "90"]
    assert encode[3] == "1024", "fused products of one thread: those of eight transforms"
    assert first[3] == "1024"
    assert apply[2] == "0"
    assert encode[6] == "0", "no value leaves the registers"
    assert 0 < int(first[6]) <= 240, "without a momentum some do"
    assert apply[5] == "0"
    assert [chunks[2], chunks[6], pairs[2], pairs[6]] == ["90", "0", "90", "0"]


@pytest.mark.long(reason="numpy interprets every kernel, a minute or two")
def test_the_table_of_equality_holds_where_numpy_interprets_the_kernels():
    code, out, err = output_of("equality.py", "--device", "cpu", "--tiles", "1", interpret="1")
    assert code == 0, err
    assert "WRONG" not in out
    assert len([line for line in out.splitlines() if line.startswith("triton ")]) == 7


@pytest.mark.cuda
@pytest.mark.long(reason="a process with PyTorch; make test has the same of choose_device")
def test_a_device_that_is_missing_is_told_from_a_wrong_answer():
    code, out, err = output_of("equality.py", "--device", "cuda:99", interpret="0")
    assert code == 2, err
    assert out == ""
    assert "the device 'cuda:99'" in err


@pytest.mark.long(reason="a process with the interpreter")
def test_kernels_that_nobody_can_run_are_an_error_of_the_table():
    code, out, err = output_of("equality.py", "--device", "cpu", "--tiles", "1", interpret="0")
    assert code == 1
    assert "triton  known answer                       WRONG  RuntimeError" in out
    assert "does not compute as the processor does" in err


@pytest.mark.long(reason="compiles a forward and backward pass, 40 seconds")
def test_passes_are_timed_eager_and_compiled():
    small = ("--preset", "smoke", "--precisions", "fp32", "--repeats", "1", "--sequences", "2")
    code, out, err = output_of("passes.py", "--device", "cpu", *small, interpret="0")
    assert code == 0, err
    head, _, row = out.splitlines()
    assert head.startswith("| precision | eager, tokens a second | compiled |")
    name, eager, compiled, gain, _ = (cell.strip() for cell in row.strip("|").split("|"))
    assert name == "fp32"
    assert err == ""
    rates = [float(cell.replace(",", "")) for cell in (eager, compiled)]
    assert float(gain) == pytest.approx(rates[1] / rates[0], abs=0.01)
