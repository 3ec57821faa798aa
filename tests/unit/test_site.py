"""The site of the documents: it has every page, loads nothing from elsewhere, needs no network."""

import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.long(reason="builds all documents")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import build_site  # noqa: E402

NO_NETWORK = """
import socket, sys
from pathlib import Path
def refuse(*_):
    raise OSError("the site is built without a network")
socket.socket.connect = socket.getaddrinfo = refuse
sys.path.insert(0, sys.argv[1])
import build_site
sys.exit(build_site.build(Path(sys.argv[2])))
"""
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "srcset"}
NOT_LOADED = {"index", "search", "next", "prev", "author", "canonical"}
"""Kinds of `link` that name a page and load nothing."""


class Page(HTMLParser):
    """The addresses that a page loads, and those that it links to."""

    def __init__(self, text):
        super().__init__()
        self.loaded, self.linked = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        address = found.get(LOADED.get(tag, ""))
        if address and not (tag == "link" and found.get("rel") in NOT_LOADED):
            self.loaded.append(address)
        if tag == "a" and "href" in found:
            self.linked.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as files, and its pages by path."""
    out = tmp_path_factory.mktemp("site") / "html"
    command = [sys.executable, "-c", NO_NETWORK, str(ROOT / "scripts"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return out, {path: Page(path.read_text()) for path in sorted(out.rglob("*.html"))}


def is_elsewhere(address):
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def test_pages_load_nothing_from_elsewhere(site):
    _, pages = site
    found = [(str(path), one) for path, page in pages.items() for one in page.loaded]
    assert len(found) > len(pages)
    assert [one for one in found if is_elsewhere(one[1])] == []


def test_styles_load_nothing_from_elsewhere(site):
    out, _ = site
    styles = list(out.rglob("*.css"))
    texts = {path.name: path.read_text() for path in styles}
    wrong = [name for name, text in texts.items() if "url(http" in text or "url(//" in text]
    assert styles
    assert wrong == []
    assert [name for name, text in texts.items() if "@import" in text and "http" in text] == []


def test_every_committed_page_is_on_the_site_and_in_its_tree(site):
    """Sphinx warns of a page outside the tree, and a warning ends the build."""
    out, pages = site
    listed = subprocess.run(
        ["git", "ls-files", "docs/*.md", "notebooks/*.ipynb", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    tree = {
        str((out / "README.html").parent / unquote(address).partition("#")[0])
        for address in pages[out / "README.html"].linked
    }
    wanted = {str(out / Path(name).with_suffix(".html")) for name in listed}
    assert len(wanted) > 50
    assert sorted(wanted - {str(path) for path in pages}) == []
    assert sorted(wanted - tree - {str(out / "README.html")}) == []


def test_links_lead_to_files_that_are_there(site):
    out, pages = site
    broken = []
    for path, page in pages.items():
        for address in page.linked + page.loaded:
            target = unquote(urlsplit(address).path)
            if target and not is_elsewhere(address) and not (path.parent / target).exists():
                broken.append(f"{path.relative_to(out)}: {address}")
    assert broken == []


def test_a_warning_fails_the_build(tmp_path, monkeypatch):
    """A page with a broken link, beside the settings of the site."""
    shutil.copytree(ROOT / "docs/site", tmp_path / "docs/site")
    monkeypatch.setattr(build_site, "ROOT", tmp_path)
    ends = {}
    for target in ("README.md", "nothing.md"):
        (tmp_path / "README.md").write_text(f"# A page\n\n[a link]({target})\n")
        ends[target] = build_site.build(tmp_path / "out" / target)
    assert ends["README.md"] == 0
    assert ends["nothing.md"] != 0
