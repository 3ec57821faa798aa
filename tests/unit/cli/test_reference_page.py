"""docs/reference/cli.md is what the declarations make it."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_committed_page_is_current():
    script = ROOT / "scripts/gen/cli_reference.py"
    spec = importlib.util.spec_from_file_location("cli_reference", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.generate()
    assert (ROOT / "docs/reference/cli.md").read_text() == page
    assert "## troth debug apply" in page
    assert "troth status RUN [OPTIONS]" in page
    (row, _) = [line for line in page.splitlines() if line.startswith("| `--ledger / --no-ledger`")]
    assert row.endswith("Default: `--ledger`. |")
