"""Files generated from the program's IDL are those that are committed."""

import importlib.util
import sys
from pathlib import Path

import pytest

GENERATORS = ("event_types", "instructions", "params_view", "reference")
SCRIPTS = Path(__file__).parents[3] / "scripts/gen"


@pytest.fixture(autouse=True)
def siblings(monkeypatch):
    """Scripts find the modules beside them."""
    monkeypatch.syspath_prepend(str(SCRIPTS))


def load(name):
    spec = importlib.util.spec_from_file_location(f"gen_{name}", SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", GENERATORS)
def test_committed_files_are_current(name, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name, "--check"])
    assert load(name).main() == 0, f"run scripts/gen/{name}.py after the program has changed"


@pytest.mark.parametrize("name", GENERATORS)
def test_a_stale_file_is_noticed_and_rewritten(name, monkeypatch, tmp_path, capsys):
    script = load(name)
    monkeypatch.setattr(script, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    assert script.main() == 0
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted(script.generate())
    (tmp_path / written[0]).write_text("stale")
    monkeypatch.setattr(sys, "argv", [name, "--check"])
    assert script.main() == 1
    assert written[0] in capsys.readouterr().out
