"""--log-to and --metrics: what is understood, and what is refused before anything is paid."""

import io
import socket
import sys
from pathlib import Path

import pytest
from support.recorded import scrape

from troth_cli.errors import InputError
from troth_cli.view.output import Output
from troth_cli.workflows.recording import recording


def printed():
    text = io.StringIO()
    return Output(err=text), text


@pytest.mark.parametrize("text", ["wandb:x", "tensorboard", "tensorboard:", "board", "", "C:\\x"])
def test_another_scheme_is_refused(text):
    with pytest.raises(InputError) as caught:
        recording([text], "")
    assert caught.value.subject == "--log-to"
    assert caught.value.expected == "tensorboard:DIR"


ELSEWHERE = ("0.0.0.0:9100", "[::]:9100", "10.0.0.1:9100", "example.com:1")
NO_ADDRESS = ("127.0.0.1", "9100", ":9100", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:x")
NO_PORT = ("127.0.0.1:65536", "127.0.0.1:٣")


@pytest.mark.parametrize("text", [*ELSEWHERE, *NO_ADDRESS, *NO_PORT])
def test_metrics_are_served_on_this_machine_alone(text):
    with pytest.raises(InputError) as caught:
        recording([], text)
    assert caught.value.subject == "--metrics"
    assert repr(text) == caught.value.found


def test_several_folders_and_an_address_are_understood():
    found = recording(["tensorboard:a", "tensorboard:C:/b"], "[::1]:0")
    assert found.tensorboard == (Path("a"), Path("C:/b"))
    assert found.metrics is not None
    assert list(found.metrics) == ["::1", 0]


def test_nothing_is_opened_where_nothing_was_asked_for():
    output, text = printed()
    with recording([], "").sinks("Owner", output) as sinks:
        assert sinks == []
    assert text.getvalue() == ""


def test_sinks_take_events_until_the_block_ends(tmp_path):
    output, text = printed()
    with recording([f"tensorboard:{tmp_path / 'b'}"], "localhost:0").sinks("O", output) as sinks:
        port = int(text.getvalue().rpartition(":")[2].partition("/")[0])
        for sink in sinks:
            sink.emit("round_closed", round=4, included=[1], void=False, own=True)
        assert scrape(port)["troth_round"] == 4
    with pytest.raises(OSError):
        scrape(port)
    assert len(list((tmp_path / "b").iterdir())) == 1


def test_an_address_in_use_is_named():
    output, _ = printed()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        asked = recording([], address)
        with pytest.raises(InputError) as caught, asked.sinks("Owner", output):
            pass
    assert address in caught.value.expected
    assert "in use" in caught.value.found


def test_without_its_extra_the_package_is_missed_at_once(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError) as caught:
        recording(["tensorboard:x"], "")
    assert caught.value.name == "tensorboardX"
