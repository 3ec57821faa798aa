"""A line on the terminal says why a participant is slower or idle, first of all for its device."""

import io

import pytest
import torch
from support.kernels import path_with

from troth_cli.view.events import OF_A_PARTICIPANT, EventLines
from troth_cli.view.output import Output
from troth_client.compression.known_answer import choose_path
from troth_client.participant.assembly import report_path

PROCESSOR = torch.device("cpu")


def printed(path):
    err = io.StringIO()
    report_path(path, EventLines(Output(err=err), OF_A_PARTICIPANT))
    return err.getvalue()


def test_a_device_that_fails_the_known_answer_test_is_left_for_the_processor():
    path = choose_path("meta", num_tiles=5000)  # a device without values answers nothing
    assert path.device == PROCESSOR
    assert path.kernels is None
    (line,) = printed(path).splitlines()
    assert line.startswith("slower_path instead=int64 on the processor reason=expected meta in")


def test_kernels_that_are_refused_leave_torch_on_the_device():
    path = path_with(None, note="another choice of coefficients")
    line = "slower_path instead=torch on cpu reason=another choice of coefficients\n"
    assert printed(path) == line


@pytest.mark.parametrize(
    "event", ["ranks_lost", "compile_failed", "out_of_memory", "judge_out_of_memory"]
)
def test_other_reasons_for_slower_or_missing_work_are_lines_as_well(event):
    err = io.StringIO()
    EventLines(Output(err=err), OF_A_PARTICIPANT).emit(event, reason="a rank was ended")
    assert err.getvalue() == f"{event} reason=a rank was ended\n"


def test_the_fastest_path_says_nothing():
    assert printed(choose_path("cpu")) == ""
