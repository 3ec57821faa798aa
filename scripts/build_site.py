"""Build the documents as a site of plain files in build/site; every warning is an error.

Owns: the call of Sphinx, and the first page. Never: needs a network.
Next: `docs/site/conf.py` for what is on the site.
"""

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
FIRST = """\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>troth</title>
<meta http-equiv="refresh" content="0; url=README.html"></head>
<body><a href="README.html">troth</a></body>
</html>
"""


def main() -> int:
    """Build the site; exit status 1 for any warning."""
    shutil.rmtree(SITE, ignore_errors=True)
    return build(SITE)


def build(out: Path) -> int:
    """Build into a folder and return Sphinx's exit status; what it keeps lies beside it."""
    cache = out.with_name(f"{out.name}-cache")
    options = ["-q", "-W", "--keep-going", "-j", "2", "-E", "-b", "html"]
    places = ["-d", str(cache), "-c", str(ROOT / "docs" / "site"), str(ROOT), str(out)]
    status = build_main([*options, *places])
    out.mkdir(parents=True, exist_ok=True)
    (out / "index.html").write_text(FIRST, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
