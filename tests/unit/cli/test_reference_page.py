"""docs/reference/cli.md is what the declarations make it."""

from pathlib import Path

from support.scripts import script

ROOT = Path(__file__).parents[3]


def test_the_committed_page_is_current():
    page = script("gen/cli_reference.py").generate()
    assert (ROOT / "docs/reference/cli.md").read_text() == page
    assert "## troth debug apply" in page
    assert "troth status RUN [OPTIONS]" in page
    (row, _) = [line for line in page.splitlines() if line.startswith("| `--ledger / --no-ledger`")]
    assert row.endswith("Default: `--ledger`. |")
