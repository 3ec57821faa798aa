import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import fleet_targets as targets

from troth_localnet.errors import FleetError
from troth_localnet.fleet import Fleet

pytestmark = pytest.mark.processes


def await_file(path) -> None:
    deadline = time.monotonic() + 20
    while not Path(path).exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.005)


def is_running(pid: int) -> bool:
    """Whether the pid is a process, a zombie not counted."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_each_config_runs_in_its_own_process(tmp_path):
    with Fleet(targets.write_pid, [str(tmp_path)] * 4) as fleet:
        assert fleet.wait(30)
        assert fleet.exit_codes() == [0, 0, 0, 0]
        assert {f"{pid}.pid" for pid in fleet.pids} == {one.name for one in tmp_path.iterdir()}
    assert len(fleet) == 4


def test_modules_are_imported_by_the_server_and_not_by_us(tmp_path):
    report = tmp_path / "report"
    script = (
        "import sys; from support import fleet_targets as t\n"
        "from troth_localnet.fleet import Fleet, preload\n"
        "if __name__ == '__main__':\n"
        "    preload(['xml.dom.minidom', 'no.such', 'support.import_state'])\n"
        f"    f = Fleet(t.report_modules, [{str(report)!r}])\n"
        "    with f: f.wait(20)\n"
        "    assert 'xml.dom.minidom' not in sys.modules\n"
    )
    _run_alone(script)
    assert json.loads(report.read_text()) == {
        "module": True,
        "other parent": True,
        "collected at import": False,
        "collects": True,
        "passes over modules": True,
    }


def test_a_pool_of_the_fork_server_passes_over_its_modules_too():
    script = (
        "import gc; from concurrent.futures import ProcessPoolExecutor as Pool\n"
        "from multiprocessing import get_context; from troth_localnet.fleet import preload\n"
        "if __name__ == '__main__':\n"
        "    preload(['json'])\n"
        "    with Pool(max_workers=1, mp_context=get_context('forkserver')) as pool:\n"
        "        assert pool.submit(gc.get_freeze_count).result(20) > 1_000\n"
    )
    _run_alone(script)


def _run_alone(script: str) -> None:
    """Run a program with a fork server of its own; tests of one process share theirs."""
    tests = str(Path(__file__).parents[2])
    subprocess.run(
        [sys.executable, "-c", script],
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": tests},
    )


def test_exit_codes_tell_return_exit_and_exception():
    with Fleet(targets.exit_with, [0, 3, 7]) as fleet:
        assert fleet.wait(30)
        assert fleet.exit_codes() == [0, 3, 7]
    with Fleet(targets.fail, [None]) as fleet:
        fleet.wait(30)
        assert fleet.exit_codes() == [1]


def test_one_can_be_killed_while_the_others_run_on(tmp_path):
    ready = [str(tmp_path / str(number)) for number in range(3)]
    with Fleet(targets.sleep_for_ever, ready) as fleet:
        for path in ready:
            await_file(path)
        pid = fleet.pids[1]
        fleet.kill(1)
        assert fleet.exit_codes() == [None, -signal.SIGKILL, None]
        assert not is_running(pid)
        assert fleet.wait_any(0) == [1]
        fleet.kill(1)
        Path(ready[1]).unlink()
        fleet.start_again(1)
        await_file(ready[1])
        assert fleet.exit_codes() == [None, None, None]
        assert fleet.pids[1] != pid
        with pytest.raises(FleetError, match="it runs"):
            fleet.start_again(0)


def test_stop_asks_first(tmp_path):
    ready = [str(tmp_path / "a"), str(tmp_path / "b")]
    fleet = Fleet(targets.leave_gracefully, ready)
    fleet.start()
    for path in ready:
        await_file(path)
    assert fleet.stop() == [0, 0]
    assert all(Path(path + ".left").exists() for path in ready)
    assert fleet.stop() == [0, 0]


def test_stop_insists_on_those_that_do_not_listen(tmp_path):
    ready = str(tmp_path / "a")
    fleet = Fleet(targets.ignore_requests, [ready])
    fleet.start()
    await_file(ready)
    (pid,) = fleet.pids
    assert fleet.stop(seconds=0.1) == [-signal.SIGKILL]
    assert not is_running(pid)


def test_wait_any_returns_when_one_ends(tmp_path):
    ready = str(tmp_path / "a")
    with Fleet(targets.leave_gracefully, [ready]) as fleet:
        await_file(ready)
        assert fleet.wait_any(0) == []
        assert fleet.wait(0) is False
        fleet.signal(0, signal.SIGTERM)
        assert fleet.wait_any(20) == [0]


def test_processes_leave_when_their_parent_is_killed(tmp_path):
    ready = str(tmp_path / "a")
    script = (
        "import os, signal, time; from pathlib import Path\n"
        "from support import fleet_targets as t\n"
        "from troth_localnet.fleet import Fleet\n"
        "if __name__ == '__main__':\n"
        f"    f = Fleet(t.leave_gracefully, [{ready!r}]); f.start()\n"
        f"    while not Path({ready!r}).exists(): time.sleep(0.01)\n"
        "    print(f.pids[0], flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    tests = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": tests},
    )
    await_file(ready + ".left")
    deadline = time.monotonic() + 20
    while is_running(int(done.stdout)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(int(done.stdout))


def test_misuse_is_named():
    fleet = Fleet(targets.exit_with, [0])
    with pytest.raises(FleetError, match=r"start\(\)"):
        fleet.exit_codes()
    assert fleet.stop() == []
    with fleet:
        with pytest.raises(FleetError, match="started one"):
            fleet.start()
        for index in (-1, 1):
            with pytest.raises(FleetError, match="index from 0 to 0"):
                fleet.kill(index)


def test_an_empty_fleet_is_no_trouble():
    with Fleet(targets.exit_with, []) as fleet:
        assert fleet.wait(1)
        assert fleet.exit_codes() == []
