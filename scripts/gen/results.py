"""Writes the compute-unit table of docs/results.md from the packaged measurements.

python scripts/gen/results.py           write
python scripts/gen/results.py --check   exit 1 if the committed table differs
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from marked import write_or_compare

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "coordinator/troth_coordinator/artifacts/compute_units.json"


def main() -> int:
    """Write the table or compare it."""
    return write_or_compare(ROOT / "docs/results.md", "compute units", table(), "results.py")


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
