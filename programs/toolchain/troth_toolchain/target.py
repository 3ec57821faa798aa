"""The compile target: rustc's own BPF target, told that it runs on Solana.

Owns: the target specification. Never: names a path (rustc hashes the specification into every
symbol, so a path in it would make the image depend on directories).
Next: `sysroot.py` builds the standard library for it.
"""

import json
from pathlib import Path

from troth_toolchain.compilers import RUSTC
from troth_toolchain.process import run

TARGET = "sbpf-solana"
_BASE = "bpfel-unknown-none"

OVERRIDES: dict[str, object] = {
    # Anchor and the Solana crates choose their on-chain code by target_os = "solana".
    "os": "solana",
    "vendor": "solana",
    "env": "",
    # The machine has one thread: narrow atomics exist because a later pass makes them plain.
    "atomic-cas": True,
    "min-atomic-width": 8,
    "max-atomic-width": 64,
    # "v2" is exactly the instruction set of sBPF V0: no alu32, no jmp32, no sign-extending loads.
    "cpu": "v2",
    "features": "+allows-misaligned-mem-access",
    "default-codegen-units": 1,
    "only-cdylib": True,
}


def specification() -> dict[str, object]:
    """Return rustc's BPF target with `OVERRIDES` applied."""
    printed = run(
        [RUSTC, "-Zunstable-options", "--target", _BASE, "--print", "target-spec-json"],
        env={"RUSTC_BOOTSTRAP": "1"},
    )
    base: dict[str, object] = json.loads(printed)
    base.pop("metadata", None)
    return base | OVERRIDES


def write_specification(directory: Path) -> None:
    """Write `<directory>/sbpf-solana.json`, where rustc finds it through RUST_TARGET_PATH."""
    text = json.dumps(specification(), indent=1, sort_keys=True) + "\n"
    (directory / f"{TARGET}.json").write_text(text)
