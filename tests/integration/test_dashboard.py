"""`troth dashboard` beside a whole demo with a cheat: what its server answers, and the page.

The page is looked at in a real browser. Its screenshots in the docs are made by the same test, with
TROTH_SCREENSHOTS=DIR.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from support.browser import CHROMIUM, visiting
from support.demos import KeptChain, perform, small_config
from support.waiting import ANSWER_SECONDS, wait_for

from troth_client.telemetry.event_log import EventTail
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions

pytestmark = [
    pytest.mark.processes,
    pytest.mark.long(reason="another whole demo, watched by a dashboard"),
]

SLOT = 200
NUM_ROUNDS = 12
in_a_browser = pytest.mark.skipif(not CHROMIUM, reason="needs Debian's chromium")


@dataclass(frozen=True)
class Shown:
    """A finished run and the dashboard that followed it from its first round."""

    url: str
    run: str
    rpc_url: str
    process: "subprocess.Popen[str]"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dashboard") / "demo"
    config = small_config(folder.parent / "small.toml")
    options = {"num_rounds": NUM_ROUNDS, "slot_milliseconds": SLOT, "margin_micro": -(10**9)}
    with (
        EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=SLOT)) as launcher,
        ThreadPoolExecutor(1) as pool,
    ):
        chain = KeptChain(launcher)
        demo = pool.submit(perform, folder, chain, config=config, **options)
        run = wait_for(lambda: created_run(folder))
        process = subprocess.Popen(
            [sys.executable, "-m", "troth_cli", "dashboard", run, "--rpc", chain.rpc_url, "--json"],
            stdout=subprocess.PIPE,
            text=True,
        )
        url = json.loads(process.stdout.readline())["url"]
        summary, _ = demo.result()
        assert summary.is_success
        yield Shown(url, run, chain.rpc_url, process)
        process.terminate()
        assert process.wait(30) == 0, "a signal ends it as asked"


def created_run(folder):
    """The run's address once it is on chain; None before."""
    if not (folder / "events.jsonl").exists():
        return None
    found = EventTail(folder / "events.jsonl").read()
    return next((event["run"] for event in found if event["event"] == "run_created"), None)


def get(shown, path="", **options):
    return httpx.get(f"{shown.url}{path}", timeout=ANSWER_SECONDS, **options)


def state_of(shown):
    return get(shown, "api/state").raise_for_status().json()


def slash_that_is_over(state):
    """A slash whose audit is closed, or None; one with nothing in escrow may stay open."""
    over = {(one["round"], one["target"]) for one in state["closed_audits"]}
    return next((one for one in state["slashes"] if (one["round"], one["index"]) in over), None)


def settled_state(shown):
    """The state once the run is over and its slash told: closed audits are read now and then."""

    def settled():
        found = state_of(shown)
        return found["phase"] == "finished" and slash_that_is_over(found) and found

    return wait_for(settled)


def test_the_state_holds_the_run_with_its_losses_its_slashes_and_its_stakes(shown):
    state = settled_state(shown)
    assert state["round"] == NUM_ROUNDS
    assert [one["round"] for one in state["rounds"]] == list(range(NUM_ROUNDS))
    known = [one for one in state["rounds"] if one["mean_loss_micro"] is not None]
    assert len(known) >= NUM_ROUNDS // 2, "headers were fetched while members served them"
    assert state["slashes"][0]["taken_lamports"] > 0
    stakes = {one["round"]: dict(one["stakes"]) for one in state["stakes"]}
    first = min(stakes)
    assert first < NUM_ROUNDS // 2, "the dashboard was there early"
    # They were kept while no page was open. A round that is shorter than a look may be left out.
    passed_over = set(range(first, NUM_ROUNDS)) - set(stakes)
    assert len(passed_over) <= NUM_ROUNDS // 4, passed_over
    assert stakes[NUM_ROUNDS][state["slashes"][0]["index"]] < stakes[first][0]


def test_audits_that_are_over_are_told_with_outcome_and_taken_lamports(shown):
    state = settled_state(shown)
    slash = slash_that_is_over(state)
    over = {(one["round"], one["target"], one["kind"]): one for one in state["closed_audits"]}
    case = over[slash["round"], slash["index"], "work"]
    assert case["outcome"] == "accused"
    assert case["case_outcome"] == "convicted"
    assert case["taken_lamports"] == slash["taken_lamports"]
    assert "cleared" in {one["outcome"] for one in over.values()}, "those of the honest"
    rounds = [one["round"] for one in state["closed_audits"]]
    assert rounds == sorted(rounds, reverse=True)
    assert not over.keys() & {(one["round"], one["target"], one["kind"]) for one in state["audits"]}
    assert state["is_closed_cut"] is False


def test_events_begin_with_the_whole_state_and_go_on_with_what_changed(shown):
    settled_state(shown)
    with httpx.stream("GET", f"{shown.url}api/events", timeout=ANSWER_SECONDS) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = (line for line in stream.iter_lines() if line.startswith("data: "))
        first = json.loads(next(lines).removeprefix("data: "))
        second = json.loads(next(lines).removeprefix("data: "))
    assert len(first["rounds"]) == NUM_ROUNDS
    assert len(first["closed_audits"]) > 0
    assert second["rounds"] == [], "nothing has changed since"
    told, later = (
        {(one["round"], one["target"], one["kind"]) for one in each["closed_audits"]}
        for each in (first, second)
    )
    assert not told & later, "what was told is not told again"
    assert second["run"] == shown.run


def test_transactions_of_a_participant_and_of_an_audit_are_told_with_links(shown):
    joined = get(shown, "api/transactions/participant/0").json()
    assert any("ParticipantJoined" in one["events"] for one in joined["transactions"]), joined
    assert all("cluster=custom" in one["url"] for one in joined["transactions"])
    slash = slash_that_is_over(settled_state(shown))
    about = f"audit/{slash['round']}/{slash['index']}/work"
    audited = get(shown, f"api/transactions/{about}").json()
    told = {name for one in audited["transactions"] for name in one["events"]}
    assert {"AuditOpened", "CaseSettled", "AuditClosed"} <= told


@pytest.mark.parametrize(
    "subject",
    ["participant/99", "participant/x", "audit/1/2/nothing", "audit/1", "audit/1/999/work", "x"],
)
def test_an_unknown_subject_is_not_found(shown, subject):
    answer = get(shown, f"api/transactions/{subject}")
    assert answer.status_code == 404
    assert "participant/INDEX" in answer.json()["error"]


def test_a_request_that_names_another_host_is_refused(shown):
    answer = get(shown, headers={"Host": "evil.example"})
    assert answer.status_code == 421


@pytest.mark.parametrize("path", ["../server.py", "server.py", "nothing.js", "static/app.js"])
def test_only_the_files_of_the_page_are_served(shown, path):
    assert get(shown, path).status_code == 404


def test_no_other_site_may_frame_or_script_the_page(shown):
    headers = get(shown).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers


def test_a_port_in_use_is_named(shown):
    port = httpx.URL(shown.url).port
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "troth_cli",
            "dashboard",
            shown.run,
            "--rpc",
            shown.rpc_url,
            "--port",
            str(port),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"127.0.0.1:{port}" in done.stderr
    assert "--port" in done.stderr


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_the_run_and_asks_nobody_else(shown, scheme):
    with visiting(shown.url, color_scheme=scheme, viewport={"width": 1200, "height": 900}) as visit:
        page = visit.page
        page.wait_for_selector("#progress-text:has-text('12 of 12')")
        assert "12 of 12" in page.title()
        assert page.locator("#run").inner_text() == shown.run
        assert "12 of 12, finished" in page.locator("#progress-text").inner_text()
        assert page.locator("#timeline button").count() == NUM_ROUNDS
        assert page.locator("#people tbody tr").count() == 6
        assert page.locator("#slashes tbody tr").count() >= 1
        rows = page.locator("#closed tbody tr")
        # Audits of the last round close after it: page and server may learn of them in turn.
        wait_for(lambda: rows.count() == len(state_of(shown)["closed_audits"]))
        assert any("accused, then convicted" in one for one in rows.all_inner_texts())
        assert page.locator("#loss-chart svg polyline").count() >= 1
        assert "Training loss. mean:" in page.locator("#loss-chart svg").get_attribute("aria-label")
        keep_picture(page, f"dashboard-{scheme}.png")
        assert all(one.startswith((shown.url, "data:")) for one in visit.requests)
        assert visit.errors == []


@in_a_browser
def test_the_keyboard_reaches_rounds_and_transactions(shown):
    with visiting(shown.url) as visit:
        page = visit.page
        page.wait_for_selector("#timeline button")
        page.locator("#timeline button").last.focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("Enter")
        assert f"Round {NUM_ROUNDS - 2} " in page.locator("#round-detail").inner_text()
        page.keyboard.press("Home")
        page.keyboard.press("Enter")
        assert "Round 0 " in page.locator("#round-detail").inner_text()
        page.locator("#people tbody tr button").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#transactions[open] tbody tr")
        link = page.locator("#transactions a").first
        assert link.get_attribute("href").startswith("https://explorer.solana.com/tx/")
        page.keyboard.press("Escape")
        page.wait_for_selector("#transactions:not([open])", state="attached")
        page.locator("#closed", has_text="convicted").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("#transactions[open] tbody tr")
        assert "AuditClosed" in page.locator("#transactions").inner_text()
        page.keyboard.press("Escape")
        page.wait_for_selector("#transactions:not([open])", state="attached")
        assert visit.errors == []


@in_a_browser
def test_every_control_has_a_name_and_a_narrow_page_does_not_scroll_sideways(shown):
    with visiting(shown.url, viewport={"width": 360, "height": 740}) as visit:
        page = visit.page
        page.wait_for_selector("#people tbody tr")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360
        nameless = page.evaluate(
            "[...document.querySelectorAll('button, a')]"
            ".filter((one) => !(one.getAttribute('aria-label') || one.textContent.trim())).length"
        )
        assert nameless == 0


def keep_picture(page, name):
    """Keep a screenshot for the docs where one is asked for."""
    folder = os.environ.get("TROTH_SCREENSHOTS")
    if folder:
        page.wait_for_selector("#live:text-is('live')")
        page.screenshot(path=Path(folder) / name, full_page=True)
