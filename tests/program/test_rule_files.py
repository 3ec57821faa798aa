"""One rule, one file name: whoever reads a rule in Rust finds it in Python under the same stem."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUST = ROOT / "programs/coordinator/src/rules"
PYTHON = (ROOT / "coordinator/troth_coordinator/rules", ROOT / "attestation/troth_attestation")


def stems(folder: Path, suffix: str) -> list[str]:
    """Names of the rule modules in a folder, without the index module and the error tree."""
    names = [path.stem for path in folder.glob(f"*{suffix}")]
    return [name for name in names if name not in ("mod", "__init__", "errors")]


def test_every_rust_rule_has_one_python_file_of_the_same_name():
    python = Counter(name for folder in PYTHON for name in stems(folder, ".py"))
    rust = stems(RUST, ".rs")
    assert len(rust) >= 13
    assert {name: python[name] for name in rust} == dict.fromkeys(rust, 1)


def test_every_rust_rule_file_is_a_module():
    index = (RUST / "mod.rs").read_text()
    declared = [line[8:-1] for line in index.splitlines() if line.startswith("pub mod ")]
    assert declared == sorted(stems(RUST, ".rs"))
    folders = [path for path in RUST.iterdir() if path.is_dir()]
    assert folders == [], "a rule is a file: stems() would not see a folder"
