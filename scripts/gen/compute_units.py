"""Measures every instruction of the shipped program and writes the table that clients read.

python scripts/gen/compute_units.py           measure, print and write
python scripts/gen/compute_units.py --check   exit 1 if the committed table differs
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.program.costs import render, table  # noqa: E402 (tests are not a package)

from troth_coordinator import artifacts  # noqa: E402

PATH = ROOT / "coordinator/troth_coordinator/artifacts" / artifacts.COMPUTE_UNITS


def main() -> int:
    """Write the table or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    rows = table()
    text = json.dumps({"instructions": rows}, indent=1) + "\n"
    if options.check:
        if PATH.is_file() and PATH.read_text() == text:
            return 0
        print(f"{PATH.name} is stale: run python scripts/gen/compute_units.py")
        return 1
    PATH.write_text(text)
    print(render(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
