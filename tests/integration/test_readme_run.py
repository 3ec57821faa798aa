"""README's section "By hand", typed into shells: an empty folder, only the wheel, twelve commands.

Only the port of the chain differs: a chain of the one who runs the tests may have the usual one.
"""

import json

import pytest
from support.installed import ROOT, build_wheel, environment, install
from support.pages import commands_of
from support.reader import Reader, free_port
from support.validator import validator_binary
from support.waiting import wait_for

LINES = commands_of((ROOT / "README.md").read_text(), "By hand")
FORTY_ROUNDS = 40
GENERATES = """
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained("model")
tokenizer = AutoTokenizer.from_pretrained("model")
asked = tokenizer("def main", return_tensors="pt")
made = model.generate(**asked, max_new_tokens=24, do_sample=False)[0]
print(len(made), tokenizer.decode(made))
"""

pytestmark = [pytest.mark.processes, pytest.mark.timeout(900)]
TWO_MINUTES = pytest.mark.long(reason="a whole run of forty rounds, as README has it")
ON_A_VALIDATOR = pytest.mark.nightly(
    reason="a whole run more; test_guide_devnet.py has such a chain"
)
CASES = [
    pytest.param("", "localnet", id="as-it-is", marks=TWO_MINUTES),
    pytest.param("validator", "smoke", id="validator-smoke", marks=ON_A_VALIDATOR),
    pytest.param("validator", "localnet", id="validator", marks=ON_A_VALIDATOR),
]


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """The folder of an environment's commands, which has the wheel and no source tree."""
    folder = tmp_path_factory.mktemp("wheel")
    return install(build_wheel(folder), folder / "env")


@pytest.fixture
def reader(tmp_path, commands):
    with Reader(tmp_path / "empty", environment(commands, tmp_path / "home")) as found:
        yield found


@pytest.mark.parametrize(("chain", "preset"), CASES)
def test_twelve_commands_lead_from_an_empty_folder_to_a_model(reader, chain, preset):
    assert sum(line.startswith("troth ") for line in LINES) == 12
    port = free_port()
    options = f" --validator {validator_binary()}" if chain else ""
    reader.words = {
        "localnet up": f"localnet up --port {port}{options}",
        "TROTH_RPC=localhost": f"TROTH_RPC=http://127.0.0.1:{port}",
        "preset localnet": f"preset {preset}",
        "localnet.toml": f"{preset}.toml",
    }
    printed = {}
    for line in LINES:
        printed[line] = reader.types(line)
        if line.startswith("troth localnet up"):
            wait_for(lambda: "127.0.0.1" in reader.shells[0].text, 60, reader.story)
    is_in_the_wheel(reader)
    watched = next(text for line, text in printed.items() if "--watch" in line)
    loss = [float(part.split()[0]) for part in watched.split("training loss ")[1:]]
    assert loss[-1] < loss[0] - 0.5, watched
    made = reader.types(f"python -c '{GENERATES}'")
    assert made.startswith(f"{len('def main') + 24} def main")
    shown = json.loads(reader.types("troth run show run.toml --json"))
    assert shown["phase"] == "finished"
    if not chain:
        assert shown["round"] == FORTY_ROUNDS


def is_in_the_wheel(reader):
    """The commands that ran were those of the wheel."""
    where = reader.types("python -c 'import troth_cli; print(troth_cli.__file__)'")
    assert "site-packages" in where
    assert str(ROOT) not in where
