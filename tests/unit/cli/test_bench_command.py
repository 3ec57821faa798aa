"""`troth bench`: every part is measured, ratios are those of the times, sizes are what they say."""

import gc
import json
import math
import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from support.disks import process_beyond_room
from support.waiting import wait_for

from troth_cli.bench.clock import in_turns
from troth_cli.bench.parts import (
    ADAMW,
    ALL_REDUCE,
    KEPT,
    OURS,
    RELEASED,
    SHA256,
    Bench,
    Part,
    Plan,
    all_reduce_on,
)
from troth_cli.bench.reduce import NUM_RANKS, dense_all_reduce
from troth_cli.bench.sizes import FIXED_BYTES, SIZES
from troth_cli.bench.table import COLUMNS, Measured, grid, picture
from troth_cli.errors import CommandError
from troth_client.compression.known_answer import integer_path

BESIDE = {
    KEPT: set(),
    "encode": {RELEASED},
    "apply": {RELEASED},
    "step": {RELEASED, ADAMW},
    "payload, write": set(),
    "payload, read": set(),
    "state root": {SHA256},
    "residual root": {SHA256},
    "judge": set(),
    "sketch": set(),
}
CPU = torch.device("cpu")
TILE = 64 * 64
"""Values of the tables that stay, such as that of the DCT."""
ENDLESS = 10**9
"""Repetitions that no test awaits."""
LIMIT = 4_000
"""Bytes of a file: more than the processes of the all-reduce need, less than a picture has."""
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.cuda
@pytest.mark.parametrize("device", DEVICES)
def test_every_part_is_measured_beside_what_it_is_compared_with(cli, tmp_path, device):
    drawing = tmp_path / "steps.svg"
    done = cli(
        "bench", "--sizes", "1M", "--device", device, "--repeats", "1", "--json", "--plot", drawing
    )
    assert done.code == 0, done.err
    (found,) = done.json["measured"]
    beside = {**BESIDE, "step": {*BESIDE["step"], all_reduce_on(torch.device(device))}}
    assert {name: set(each) - {OURS} for name, each in found["seconds"].items()} == beside
    assert all(seconds > 0 for part in found["seconds"].values() for seconds in part.values())
    assert found["parameters"] == SIZES["1M"].num_parameters
    assert "dense all-reduce" in drawing.read_text()


def test_a_path_that_fell_back_is_named_with_its_device_arithmetic_and_reason(cli, monkeypatch):
    path = integer_path("other Q in tile 3")
    monkeypatch.setattr("troth_cli.bench.parts.choose_path", lambda *_args, **_options: path)
    words = ("bench", "--sizes", "1M", "--device", "cpu", "--repeats", "1", "--peers", "1")
    told = "torch, on cpu in int64: other Q in tile 3"
    assert told in " ".join(cli(*words).out.split())
    (found,) = cli(*words, "--json").json["measured"]
    assert found["kernels"] == told


@pytest.mark.cuda
def test_an_all_reduce_beside_the_step_of_a_gpu_is_called_that_of_the_processor():
    assert all_reduce_on(CPU) == ALL_REDUCE
    assert all_reduce_on(torch.device("cuda", 0)) == "dense all-reduce, processor"


def test_each_peer_chooses_coefficients_of_its_own():
    """Equal payloads would cost us less: our sums skip rows in which nobody sends anything."""
    bench = Bench(SIZES["1M"], Plan(k=8, peers=3, repeats=1, device=CPU))
    chosen = np.concatenate([bench.payload_of(peer).signs.indices for peer in range(3)], axis=1)
    distinct = np.mean([len(set(tile)) for tile in chosen.tolist()])
    assert distinct > 0.95 * 3 * 8


@pytest.mark.parametrize("name", SIZES)
def test_a_size_has_as_many_parameters_as_it_says(name):
    size = SIZES[name]
    unit = {"M": 10**6, "B": 10**9}[name[-1]]
    assert size.num_parameters == sum(math.prod(shape) for shape in size.shapes.values())
    assert size.num_parameters == pytest.approx(int(name[:-1]) * unit, rel=0.15)


def test_a_ratio_above_one_means_that_ours_is_faster():
    parts = [Part("apply", {OURS: 0.002, RELEASED: 0.005}), Part("judge", {OURS: 0.001})]
    measured = Measured("1M", 1, "cpu", 9, "torch", parts)
    apply, judge = (dict(zip(COLUMNS, row, strict=True)) for row in grid([measured]).rows)
    assert apply["troth, ms"] == "2.00"
    assert apply["ms"] == "5.00"
    assert apply["times as fast"] == "2.50"
    assert judge["times as fast"] == ""


def test_the_picture_is_the_same_for_the_same_numbers():
    found = [Measured("1M", 1, "cpu", 9, "torch", [Part("step", {OURS: 0.1, RELEASED: 0.4})])]
    assert picture(found) == picture(found)
    assert "released DeMo, 400 ms" in picture(found)


def test_ways_take_turns_and_the_first_turn_is_not_counted():
    naps, clock, order = iter([90.0, 1.0, 2.0, 9.0]), [0.0], []

    def nap():
        order.append("nap")
        clock[0] += next(naps)

    def blink():
        order.append("blink")
        clock[0] += 0.5

    found = in_turns({"nap": nap, "blink": blink}, 3, CPU, lambda: clock[0])
    assert found == {"nap": 2.0, "blink": 0.5}
    assert order == ["nap", "blink"] * 4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--sizes", "2M"), "1M, 7M, 30M"),
        (("--sizes", ","), "1M, 7M, 30M"),
        (("--sizes", "1M", "--device", "tpu"), "auto, cpu"),
        (("--sizes", "1M", "--repeats", "0"), "--repeats"),
        (("--sizes", "1M", "--k", "65"), "--k"),
        (("--sizes", "1M", "--threads", "100000"), "--threads"),
    ],
)
def test_bad_options_are_refused_with_what_is_possible(cli, options, expected):
    done = cli("bench", *options)
    assert done.code != 0
    assert expected in done.err
    assert "Traceback" not in done.err


def test_a_size_that_does_not_fit_is_left_out(cli, monkeypatch):
    monkeypatch.setattr("troth_client.participant.measuring.free_bytes", lambda: 10**6)
    done = cli("bench", "--sizes", "1M", "--device", "cpu")
    assert done.code == 1
    assert "1M is left out: it takes 1.7 GB with 8 peers, and 0.0 GB are free" in done.err
    assert "--sizes 1M" in done.err


@pytest.mark.cuda
def test_what_one_size_took_is_free_when_the_next_one_is_judged(cli, monkeypatch):
    """The second size finds no memory: only the question is of interest."""
    held, order = [], []

    def free_bytes():
        tensors = (one for one in gc.get_objects() if type(one) is torch.Tensor)
        held.append(sum(one.numel() > TILE for one in tensors))
        order.append("asked")
        return 10**12 if len(held) == 1 else 0

    monkeypatch.setattr("troth_client.participant.measuring.free_bytes", free_bytes)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: order.append("given back"))
    gc.collect()
    done = cli("bench", "--sizes", "1M,7M", "--device", "cpu", "--repeats", "1", "--peers", "1")
    assert done.code == 0, done.err
    assert "7M is left out" in done.err
    assert held[1] <= held[0]
    assert order == ["given back", "asked"] * 2


MEASURE = """
import sys, torch
from troth_cli.bench.parts import Bench, Plan
from troth_cli.bench.sizes import SIZES
from troth_client.participant.measuring import peak_bytes
torch.set_num_threads(1)
imported, peers = peak_bytes(), int(sys.argv[1])
for _part in Bench(SIZES["7M"], Plan(8, peers, 1, torch.device("cpu"))).parts():
    pass
print(imported, peak_bytes(), SIZES["7M"].num_bytes(peers))
"""


@pytest.mark.long(reason="measures in processes of its own; the sums are arithmetic")
@pytest.mark.parametrize("peers", [2, 64])
def test_a_measurement_takes_no_more_memory_than_is_asked_for(peers):
    command = [sys.executable, "-c", MEASURE, str(peers)]
    found = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    imported, taken, asked = (int(word) for word in found.stdout.split())
    assert (asked - FIXED_BYTES) / 2 < taken - imported
    assert taken < asked


def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_measured(cli, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.svg").mkdir()
    for name, found in {
        "file/steps.svg": "not a directory",
        "missing/steps.svg": f"no folder {tmp_path / 'missing'}",
        "folder.svg": "a folder",
    }.items():
        done = cli("bench", "--sizes", "1M", "--device", "cpu", "--plot", tmp_path / name, "--json")
        assert done.code == 1
        assert done.error["kind"] == "OutputFileError"
        assert done.error["found"] == found
        assert "1M on cpu" not in done.err


def test_without_its_extra_nothing_is_measured_for_a_picture(cli, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = cli(
        *("bench", "--sizes", "1M", "--device", "cpu", "--plot", tmp_path / "steps.svg", "--json")
    )
    assert done.error["kind"] == "PackageMissingError"
    assert "1M on cpu" not in done.err


@pytest.mark.long(reason="three processes import torch")
def test_a_disk_that_is_full_in_the_end_costs_the_picture_alone(tmp_path):
    """The check before passes: it writes nothing. The picture has more bytes than the limit."""
    drawing = tmp_path / "steps.svg"
    words = ("bench", "--sizes", "1M", "--device", "cpu", "--repeats", "1", "--json")
    done = process_beyond_room(LIMIT, *words, "--plot", drawing)
    assert done.returncode == 1
    assert json.loads(done.stderr.splitlines()[-1])["error"]["kind"] == "DiskFullError"
    (found,) = json.loads(done.stdout)["measured"]
    assert set(found["seconds"]) == set(BESIDE)
    assert not drawing.exists()


@pytest.mark.long(reason="two processes import torch")
def test_a_rank_that_dies_is_an_error():
    with pytest.raises(CommandError, match="exit code 1"):
        dense_all_reduce(-1, 1, 1)


@pytest.mark.long(reason="two processes import torch")
def test_a_rank_that_dies_while_the_other_one_waits_for_it_ends_both():
    def look():
        found = [one for one in multiprocessing.active_children() if one.name.startswith("_reduce")]
        return found if len(found) == NUM_RANKS else None

    with ThreadPoolExecutor(1) as threads:
        found = threads.submit(dense_all_reduce, 1_000, ENDLESS, 1)
        ranks = wait_for(look)
        os.kill(ranks[-1].pid, signal.SIGKILL)
        # Where they have met already, the other one may be faster to fail.
        with pytest.raises(CommandError, match=r"exit code (-9|1)"):
            found.result(60)
    assert [one.name for one in ranks if one.is_alive()] == []
