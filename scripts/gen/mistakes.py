"""Writes docs/reference/mistakes.md: makes each mistake at a chain and prints what troth says.

python scripts/gen/mistakes.py           write
python scripts/gen/mistakes.py --check   exit 1 if the committed page differs

`tests/integration/test_mistakes.py` compares the page too, so `make docs` need not start a chain.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.mistake_list import MISTAKES  # noqa: E402
from support.mistakes import PAGE, own_words, page, workplace  # noqa: E402


def main() -> int:
    """Write the page or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, workplace(Path(folder)) as place:
        fresh = page([(mistake, place.make(mistake)) for mistake in MISTAKES])
    if not options.check:
        PAGE.write_text(fresh)
        return 0
    if PAGE.is_file() and own_words(PAGE.read_text()) == own_words(fresh):
        return 0
    print(f"{PAGE.name} is stale: run python scripts/gen/mistakes.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
