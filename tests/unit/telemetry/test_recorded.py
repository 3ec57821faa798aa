"""Events as TensorBoard's scalars and as metrics: read back by the readers that users have."""

import contextlib
import http.client
import signal
import subprocess
import sys

import pytest
from support.event_logs import rounds_of
from support.recorded import scalars, scrape

from troth_client.telemetry.events import EventSinks
from troth_client.telemetry.metrics import Metrics
from troth_client.telemetry.tensorboard import TensorBoard

SOL = 10**9
EVENTS = [
    ("joined", {"index": 0, "fee": 7_000}),
    ("phase", {"phase": "WARMUP", "round": 0}),
    ("phase", {"phase": "COMMIT", "round": 0}),
    ("tallied", {"round": 0, "stake": SOL // 10, "claimable": 0, "unvested": 5}),
    *rounds_of(3, mean_loss_micro=4_500_000),
    ("validated", {"round": 2, "loss_micro": 4_250_000}),
    ("tallied", {"round": 2, "stake": SOL // 5, "claimable": 3_000_000, "sent_bytes": 7}),
    ("judged", {"round": 1, "target": 1, "verdict": "OK"}),
    ("judged", {"round": 2, "target": 1, "verdict": "MISMATCH"}),
    ("rpc_trouble", {"node": "a", "what": "slow"}),
    ("rpc_trouble", {"node": "a", "what": "away"}),
    ("rpc_trouble", {"node": "b", "what": "away"}),
    ("rpc_recovered", {"node": "a"}),
    ("round_closed", {"round": 3, "included": [], "void": True, "own": False}),
]
STRANGE = [
    ("phase", {"phase": "DREAMING", "round": 0}),
    ("judged", {"round": 1, "verdict": "PERHAPS"}),
    ("trained", {"round": -1, "loss_micro": 1}),
    ("trained", {"round": 1, "loss_micro": 10**30}),
    ("encoded", {"round": 1, "payload_bytes": "many"}),
    ("wrote_a_novel", {"fee": "dear"}),
]


@pytest.fixture
def metrics():
    with Metrics("127.0.0.1", 0) as made:
        yield made


def give(sink, events):
    for name, fields in events:
        sink.emit(name, **fields)


def test_metrics_are_served_as_the_events_say(metrics):
    give(metrics, EVENTS + STRANGE)
    found = scrape(metrics.port)
    expected = {
        "troth_round": 3,
        "troth_rounds_closed_total": 4,
        "troth_rounds_void_total": 1,
        "troth_own_payloads_included_total": 3,
        "troth_included_payloads": 0,
        "troth_loss_nats": 4.8,
        "troth_mean_loss_nats": 4.5,
        "troth_validation_loss_nats": 4.25,
        "troth_payload_bytes": 640,
        "troth_fees_lamports": 7_000 + 3 * 5_000,
        "troth_stake_lamports": SOL // 5,
        "troth_claimable_lamports": 3_000_000,
        "troth_unvested_lamports": 5,
        "troth_sent_bytes": 7,
        'troth_verdicts_total{verdict="ok"}': 1,
        'troth_verdicts_total{verdict="mismatch"}': 1,
        'troth_verdicts_total{verdict="unavailable"}': 0,
        'troth_phase{troth_phase="commit"}': 1,
        'troth_phase{troth_phase="warmup"}': 0,
        "troth_rpc_troubles_total": 2,
        "troth_rpc_nodes_in_trouble": 1,
    }
    assert {name: found[name] for name in expected} == expected
    assert found["troth_closed_timestamp_seconds"] > 1.7e9
    assert found["troth_round_seconds"] >= 0


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:1", "10.0.0.1", "[::"])
def test_a_name_that_points_here_is_refused(metrics, host):
    """Threat T124. A web page lets its own name point at this machine, to read what it serves."""
    assert status_of(metrics, host) == 421
    for name in ("localhost:9000", "127.0.0.1", f"[::1]:{metrics.port}"):
        assert status_of(metrics, name) == 200, "a tunnel has a port of its own"


def status_of(metrics, host):
    asked = http.client.HTTPConnection("127.0.0.1", metrics.port, timeout=10)
    with contextlib.closing(asked):
        asked.request("GET", "/metrics", headers={"Host": host})
        return asked.getresponse().status


def test_a_closed_server_answers_nobody_and_leaves_its_port(metrics):
    metrics.close()
    with pytest.raises(OSError):
        scrape(metrics.port)
    with Metrics("127.0.0.1", metrics.port) as again:
        assert scrape(again.port)["troth_rounds_closed_total"] == 0


def test_scalars_are_read_back_by_tensorboard(tmp_path):
    warned = []
    with TensorBoard(tmp_path / "board", "Owner", warned.append) as board:
        give(EventSinks(board), EVENTS + STRANGE)
    found = scalars(tmp_path / "board")
    assert warned == []
    assert found["loss/own"] == pytest.approx({0: 5.0, 1: 4.9, 2: 4.8})
    assert found["loss/mean"] == pytest.approx({0: 4.5, 1: 4.5, 2: 4.5})
    assert found["loss/validation"] == {2: 4.25}
    assert found["round/payload_bytes"] == {0: 640, 1: 640, 2: 640}
    assert found["round/included"] == {0: 2, 1: 2, 2: 2, 3: 0}
    assert set(found["round/seconds"]) == {1, 2, 3}
    assert found["money/stake_sol"] == pytest.approx({0: 0.1, 2: 0.2})
    assert found["money/claimable_sol"] == pytest.approx({0: 0, 2: 0.003})
    assert found["money/fees_sol"][3] == pytest.approx(22_000 / SOL)


def test_rounds_can_be_read_while_the_run_goes_on(tmp_path):
    with TensorBoard(tmp_path, "Owner", print) as board:
        give(board, rounds_of(2))
        assert set(scalars(tmp_path)["loss/own"]) == {0, 1}


def test_a_participant_that_comes_back_adds_to_its_folder(tmp_path):
    for first in (0, 2):
        with TensorBoard(tmp_path, "Owner", print) as board:
            events = [(name, fields) for name, fields in rounds_of(4) if fields["round"] >= first]
            give(board, events[:8])
    assert set(scalars(tmp_path)["loss/own"]) == {0, 1, 2, 3}


FILLER = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.event_logs import rounds_of
from troth_client.telemetry.tensorboard import TensorBoard
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
events = rounds_of(60, loss=9_000_000)
with TensorBoard(Path(sys.argv[1]), "Owner", print) as board:
    for number, (name, fields) in enumerate(events):
        if number == 40:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limit[1]))
        if number == 200:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        board.emit(name, **fields)
"""


@pytest.mark.long(reason="a process writes until its limit")
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no file size limits here")
def test_a_full_disk_costs_scalars_and_nothing_else(tmp_path, pytestconfig):
    tests = pytestconfig.rootpath / "tests"
    command = [sys.executable, "-c", FILLER, str(tmp_path), str(tests)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("TensorBoard's files cannot be written") == 1
    kept = set(scalars(tmp_path)["loss/own"])
    assert set(range(9)) <= kept
    assert set(range(51, 60)) <= kept


def test_a_folder_that_cannot_be_made_is_an_error_before_the_run(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        TensorBoard(tmp_path / "file", "Owner", print)
