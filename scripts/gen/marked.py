"""A table between two markers of a page that people write.

Owns: finding the place, writing it, comparing it. Never: makes a table.
Next: `results.py` and `sizes.py`, which make theirs.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def write_or_compare(page: Path, name: str, table: str, script: str) -> int:
    """Put a table between the markers `NAME: begin` and `NAME: end` of a page.

    With --check on the command line nothing is written, and 1 is returned if the page differs.
    """
    parser = argparse.ArgumentParser(description=f"Write the table '{name}' of {page.name}.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    text = page.read_text()
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page.name} has no lines {begin} and {end}")
    fresh = f"{before}{begin}\n{table}{end}{after}"
    if not options.check:
        page.write_text(fresh)
        return 0
    if text == fresh:
        return 0
    print(f"{page.name} is stale: run python scripts/gen/{script}")
    return 1
