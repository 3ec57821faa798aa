"""Files generated from the program's IDL are those that are committed."""

import sys

import pytest
from support.scripts import SCRIPTS, script

GENERATORS = ("event_types", "instructions", "params_view", "reference")


@pytest.fixture(autouse=True)
def siblings(monkeypatch):
    """Scripts find the modules beside them."""
    monkeypatch.syspath_prepend(str(SCRIPTS / "gen"))


@pytest.mark.parametrize("name", GENERATORS)
def test_committed_files_are_current(name, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name, "--check"])
    main = script(f"gen/{name}.py").main
    assert main() == 0, f"run scripts/gen/{name}.py after the program has changed"


@pytest.mark.parametrize("name", GENERATORS)
def test_a_stale_file_is_noticed_and_rewritten(name, monkeypatch, tmp_path, capsys):
    generator = script(f"gen/{name}.py")
    monkeypatch.setattr(generator, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    assert generator.main() == 0
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted(generator.generate())
    (tmp_path / written[0]).write_text("stale")
    monkeypatch.setattr(sys, "argv", [name, "--check"])
    assert generator.main() == 1
    assert written[0] in capsys.readouterr().out
