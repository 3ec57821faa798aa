"""Check that the documents still tell the truth: links, generated references, threats, prose.

Owns: the list of generators that have a check mode. Never: rewrites anything.
Next: `check_threat_model.py`, which holds the threat model against the tests; `check_prose.py`.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import check_prose
import check_threat_model

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
GENERATORS = (
    "cli_reference.py",
    "config_reference.py",
    "glossary.py",
    "reference.py",
    "event_types.py",
    "instructions.py",
    "params_view.py",
    "compute_units.py",
    "results.py",
)


def main() -> int:
    """Print every problem; exit status 1 if there is one."""
    root = Path(__file__).resolve().parents[1]
    problems = [
        *broken_links(root),
        *stale_references(root),
        *check_threat_model.problems(root),
        *check_prose.problems(),
    ]
    summary = "docs: links resolve, references are current, the threat model names its tests"
    print("\n".join(problems or [summary]))
    print("\n".join(check_prose.counts()))
    return 1 if problems else 0


def broken_links(root: Path) -> Iterator[str]:
    """Yield relative links of the committed Markdown files that lead nowhere."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.md"], cwd=root, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        path = root / name
        for target in LINK.findall(path.read_text(encoding="utf-8")):
            is_elsewhere = "://" in target or target.startswith("mailto:")
            if not is_elsewhere and not (path.parent / target).exists():
                yield f"{name}: link to {target} leads nowhere"


def stale_references(root: Path) -> Iterator[str]:
    """Yield generators whose committed output differs from what they make now."""
    for name in GENERATORS:
        script = root / "scripts" / "gen" / name
        done = subprocess.run(
            [sys.executable, str(script), "--check"],
            check=False,
            cwd=root,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            lines = (done.stdout + done.stderr).strip().splitlines()
            yield f"scripts/gen/{name} --check: {lines[-1] if lines else 'failed'}"


if __name__ == "__main__":
    sys.exit(main())
