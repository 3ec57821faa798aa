"""A real browser: Debian's Chromium, driven by playwright.

Owns: finding it, and a page that records what it asked for and what went wrong in it.
Never: downloads a browser. Next: `tests/integration/test_dashboard.py`.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field

from playwright.sync_api import Page, sync_playwright

CHROMIUM = shutil.which("chromium") or ""


@dataclass
class Visit:
    """An open page, the addresses that it asked for, and errors in its console."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@contextlib.contextmanager
def visiting(url: str, **context: object) -> Iterator[Visit]:
    """Open a page; `context` is what playwright's new_context takes, like colour_scheme."""
    # Chromium's sandbox refuses to work for root, as which CI runs.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_context(**context).new_page()  # type: ignore[arg-type]
        visit = Visit(page)
        page.on("request", lambda request: visit.requests.append(request.url))
        page.on("pageerror", lambda error: visit.errors.append(str(error)))
        page.on(
            "console",
            lambda line: visit.errors.append(line.text) if line.type == "error" else None,
        )
        page.goto(url)
        try:
            yield visit
        finally:
            browser.close()
