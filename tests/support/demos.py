"""Whole demos: a chain that outlives the demo, what its logs and its chain show, its processes.

Owns: performing and reading a demo. Never: judges it. Next: processes.py.
"""

import io
import os
import tomllib
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from solders.pubkey import Pubkey

from support.waiting import ANSWER_SECONDS
from troth_cli.demo.options import CONFIG, DemoOptions
from troth_cli.demo.runner import run_demo
from troth_cli.demo.summary import Summary
from troth_client.telemetry.event_log import EventTail
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.rules.view import RoundView, RunView
from troth_localnet.launcher import Launcher

SMOKE = Path(__file__).parents[2] / "configs" / "smoke.toml"
MARK = "TROTH_TEST_MARK"
WINDOWS = ("openings", "verdict_commit", "verdict_reveal", "jury_commit", "jury_reveal")
PATIENT = {f"{name}_slots": 900 for name in WINDOWS} | {
    "p_new_ppm": 1_000_000,
    "case_slots": 150,
    "vesting_slots": 20_000,
    "unbond_slots": 20_000,
}
"""More audits, and windows in which a machine may stand still for a while."""
SHORTER = {f"{name}_slots": 300 for name in WINDOWS}
"""Where tiles are hidden, seats wait for most of a window: a demo gives up on longer ones."""


class KeptChain:
    """A launcher that the demo cannot stop, so that a test can read its chain afterwards."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self.num_stops = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._launcher, name)

    def stop(self) -> None:
        self.num_stops += 1


def perform(folder: Path, launcher: KeptChain | None, **changes: Any) -> tuple[Summary, str]:
    """Run a demo of the smallest model; return its summary and what it printed."""
    printed = io.StringIO()
    console = Console(file=printed, width=160)
    options = DemoOptions(**{"folder": folder, "config": SMOKE, **changes})
    return run_demo(options, console, launcher), printed.getvalue()


def small_config(path: Path, **changes: int) -> Path:
    """Write a config of the smallest model under the demo's own rules, with more audits.

    Tests play a demo with shorter slots than a user's: its windows have more of them.
    """
    rules = tomllib.loads(CONFIG.read_text())["chain"] | PATIENT | changes
    model = SMOKE.read_text().partition("[chain]")[0]
    chosen = (f"{name} = {value!r}\n" for name, value in rules.items())
    path.write_text(f"{model}[chain]\n{''.join(chosen)}")
    return path


def events_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """All events of one trainer."""
    return list(EventTail(folder / name / "events.jsonl").read())


def roots_by_round(folder: Path, name: str) -> dict[int, str]:
    """The state root that a trainer held after each round."""
    return {
        event["round"]: event["root"]
        for event in events_of(folder, name)
        if event["event"] == "round_closed"
    }


async def read_chain(
    launcher: Launcher | KeptChain, run: Pubkey
) -> tuple[RunView, dict[int, RoundView]]:
    """The run and its rounds that are still in the ring, by number."""
    async with HttpRpc(launcher.rpc_url) as rpc:
        client = CoordinatorClient(rpc)
        view = await client.read_run(run)
        first = max(0, view.round - view.params.ring)
        rounds = await client.read_rounds(run, range(first, view.round))
        return view, {one.round: one for one in rounds if one is not None}


async def fees_of_all_transactions(launcher: Launcher | KeptChain, address: Pubkey | str) -> int:
    """The fees of every transaction that touched an address, from the chain's own records."""
    async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as http:

        async def call(method: str, *params: object) -> Any:
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
            reply = await http.post(launcher.rpc_url, json=body)
            return reply.json()["result"]

        total = 0
        before: dict[str, str] = {}
        while page := await call(
            "getSignaturesForAddress", str(address), {"commitment": "confirmed", **before}
        ):
            for entry in page:
                config = {"commitment": "confirmed", "maxSupportedTransactionVersion": 0}
                total += (await call("getTransaction", entry["signature"], config))["meta"]["fee"]
            before = {"before": page[-1]["signature"]}
        return total


def marked_processes(mark: str) -> list[int]:
    """The pids of living processes that carry this mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and wanted in _environment(entry):
            found.append(int(entry.name))
    return found


def marked_environment(mark: str) -> dict[str, str]:
    """The environment of a process whose descendants are to be found again."""
    return {**os.environ, MARK: mark, "NO_COLOR": "1"}


def _environment(process: Path) -> bytes:
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        return b"" if state == "Z" else (process / "environ").read_bytes()
    except OSError:
        return b""
