"""The site made of the pages in this repository: what is on it, in which order, how it looks.

Owns: Sphinx's settings. The pages stay plain Markdown that is read on GitHub as well: the tree of
pages is added here. Never: loads a font, script or picture from elsewhere.
Next: `scripts/build_site.py`, which builds it.
"""

from fnmatch import fnmatch
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]

project = "troth"
author = "the authors of troth"
release = version = version_of("troth")
html_title = f"troth {version}"

extensions = ["myst_nb"]
root_doc = "README"
include_patterns = ["*.md", "*/README.md", "docs/*.md", "docs/**/*.md", "notebooks/*.ipynb"]
include_patterns += ["scripts/*/README.md", "tests/*/README.md"]
exclude_patterns = [".*", "build", "target"]
suppress_warnings = ["myst.header"]  # a table of the README has a heading of its own
myst_heading_anchors = 4
nb_execution_mode = "off"  # make notebooks runs them; here are the committed outputs

html_theme = "furo"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_show_sphinx = False
html_copy_source = False
html_show_copyright = False
pygments_style = "friendly"
pygments_dark_style = "native"

SECTIONS = {
    "Guides": (
        "docs/README",
        "docs/guide/run",
        "docs/guide/join",
        "docs/guide/keep-running",
        "docs/guide/witness",
        "docs/guide/checkpoints",
        "docs/guide/*",
    ),
    "Concepts": (
        "docs/concepts/round",
        "docs/concepts/audit",
        "docs/concepts/money",
        "docs/concepts/*",
        "notebooks/*",
    ),
    "Reference": ("docs/reference/*", "docs/glossary"),
    "Protocol": ("docs/protocol", "docs/threat-model", "docs/faults", "docs/simulation"),
    "Decisions": ("docs/decisions/README", "docs/decisions/*"),
    "Code": ("docs/layout", "*/README", "scripts/*/README", "tests/*/README"),
    "Project": ("docs/results", "docs/*", "CONTRIBUTING", "SECURITY", "CHANGELOG", "*"),
}
"""The tree of pages. A pattern adds what no entry before it named: a new page finds a place."""


def toctrees(pages: set[str]) -> str:
    """Return the tree as MyST directives, each page once. Patterns stay within their folder."""
    text, left = "", set(pages)
    for caption, entries in SECTIONS.items():
        found: list[str] = []
        for entry in entries:
            depth = entry.count("/")
            matching = sorted(n for n in left if fnmatch(n, entry) and n.count("/") == depth)
            found += matching
            left -= set(matching)
        body = "\n".join(f"/{name}" for name in found)
        text += f"\n```{{toctree}}\n:caption: {caption}\n:maxdepth: 1\n:hidden:\n\n{body}\n```\n"
    return text


def add_tree(app: Sphinx, name: str, source: list[str]) -> None:
    """Put the tree at the end of the first page, where GitHub does not show it."""
    if name == root_doc:
        source[0] += toctrees(set(app.env.found_docs) - {root_doc})


def setup(app: Sphinx) -> None:
    """Connect to Sphinx, which calls this."""
    app.connect("source-read", add_tree)
