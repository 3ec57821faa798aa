"""Writes the compute-unit table of docs/results.md from the packaged measurements.

python scripts/gen/results.py           write
python scripts/gen/results.py --check   exit 1 if the committed table differs
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/results.md"
TABLE = ROOT / "coordinator/troth_coordinator/artifacts/compute_units.json"
BEGIN, END = "<!-- compute units: begin -->", "<!-- compute units: end -->"


def main() -> int:
    """Write the table or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    fresh = f"{before}{BEGIN}\n{table()}{END}{after}"
    if not options.check:
        PAGE.write_text(fresh)
        return 0
    if page == fresh:
        return 0
    print(f"{PAGE.name} is stale: run python scripts/gen/results.py")
    return 1


def table() -> str:
    """Return the table, an instruction a line."""
    rows = json.loads(TABLE.read_text())["instructions"]
    lines = ["| instruction | measured, worst case | with unlucky addresses | transaction bytes |"]
    lines.append("|---|---:|---:|---:|")
    for name, row in sorted(rows.items()):
        measured, worst = row["measured_units"], row["compute_units"]
        lines.append(f"| `{name}` | {measured:,} | {worst:,} | {row['transaction_bytes']:,} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
