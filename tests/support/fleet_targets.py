"""The targets of the fleet's test processes, which find them here by name."""

import gc
import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn


def write_pid(folder: str) -> None:
    (Path(folder) / f"{os.getpid()}.pid").write_text(str(os.getppid()))


def exit_with(code: int) -> None:
    sys.exit(code)


def fail(_config: object) -> None:
    sys.stderr.close()  # keep the expected traceback out of the test output
    raise RuntimeError("as asked")


def sleep_for_ever(ready: str) -> None:
    Path(ready).touch()
    while True:
        time.sleep(60)


def leave_gracefully(ready: str) -> None:
    def leave(*_: object) -> NoReturn:
        Path(ready + ".left").touch()
        sys.exit(0)

    signal.signal(signal.SIGTERM, leave)
    sleep_for_ever(ready)


def ignore_requests(ready: str) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep_for_ever(ready)


def report_modules(path: str) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    found = {
        "module": "xml.dom.minidom" in sys.modules,
        "other parent": os.getppid() != parent.pid,
        "collected at import": sys.modules["support.import_state"].COLLECTED_GARBAGE,
        "collects": gc.isenabled(),
        "passes over modules": gc.get_freeze_count() > 1_000,
    }
    Path(path).write_text(json.dumps(found))
