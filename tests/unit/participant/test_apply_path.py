"""A line on the terminal says why a participant is slower or idle, first of all for its device."""

import io

import pytest
import torch
from support.kernels import path_with

from troth_cli.view.events import OF_A_PARTICIPANT, EventLines
from troth_cli.view.output import Output
from troth_client.compression import exact, known_answer
from troth_client.compression.known_answer import COMPILED_FROM_TILES, choose_path
from troth_client.participant.assembly import report_path

PROCESSOR = torch.device("cpu")


def printed(path):
    err = io.StringIO()
    report_path(path, EventLines(Output(err=err), OF_A_PARTICIPANT))
    return err.getvalue()


def test_a_device_that_fails_the_known_answer_test_is_left_for_the_processor():
    path = choose_path("meta")  # a device without values answers nothing
    assert path.device == PROCESSOR
    assert path.dtype == torch.float64
    assert path.kernels is None
    (line,) = printed(path).splitlines()
    assert line.startswith("slower_path instead=torch on cpu reason=expected meta in")


def test_the_processor_that_stands_in_has_its_kernels():
    path = choose_path("meta", num_tiles=COMPILED_FROM_TILES)
    assert path.device == PROCESSOR
    assert path.kernels == choose_path("cpu", num_tiles=COMPILED_FROM_TILES).kernels
    assert path.kernels is not None
    (line,) = printed(path).splitlines()
    assert line.startswith("slower_path instead=compiled kernels on cpu reason=expected meta in")


def test_a_processor_that_fails_as_well_computes_in_integers(monkeypatch):
    inverse = exact.inverse

    def broken_in_fp64(counts, basis):
        q = inverse(counts, basis)
        return q + 1 if q.dtype == torch.float64 else q

    monkeypatch.setattr(known_answer, "inverse", broken_in_fp64)
    path = choose_path("meta", num_tiles=COMPILED_FROM_TILES)
    assert path.device == PROCESSOR
    assert path.dtype == torch.int64
    assert path.kernels is None
    (line,) = printed(path).splitlines()
    assert line.startswith("slower_path instead=torch on cpu in int64 reason=expected meta in")


def test_kernels_that_are_refused_leave_torch_on_the_device():
    path = path_with(None, note="another choice of coefficients")
    line = "slower_path instead=torch on cpu reason=another choice of coefficients\n"
    assert printed(path) == line


@pytest.mark.parametrize(
    "event",
    ["ranks_lost", "rank_failed", "compile_failed", "out_of_memory", "judge_out_of_memory"],
)
def test_other_reasons_for_slower_or_missing_work_are_lines_as_well(event):
    err = io.StringIO()
    EventLines(Output(err=err), OF_A_PARTICIPANT).emit(event, reason="a rank was ended")
    assert err.getvalue() == f"{event} reason=a rank was ended\n"


def test_the_fastest_path_says_nothing():
    assert printed(choose_path("cpu")) == ""
