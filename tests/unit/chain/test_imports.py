"""Importing the client must stay cheap: `troth --help` and `troth status` pay for it."""

import re
import subprocess
import sys
from pathlib import Path

import troth_coordinator

HEAVY = ("anchorpy", "solana", "httpx", "construct", "numpy", "torch")
PACKAGES = ("client", "coordinator", "attestation", "localnet")
ROOT = Path(troth_coordinator.__file__).parents[2]


def loaded_by(code):
    """Names of HEAVY that a process has loaded after running the code."""
    code += f"\nimport sys; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_nothing_heavy_is_imported_with_the_client():
    assert (
        loaded_by("import troth_coordinator.chain.client, troth_coordinator.chain.operations")
        == "[]"
    )


def test_building_instructions_and_reading_the_chain_need_no_anchorpy():
    code = """
from solders.pubkey import Pubkey
from troth_coordinator.chain import addresses, codec, instructions, layouts
at = addresses.RunAddresses.create(Pubkey.default(), b"r" * 32, 8)
instructions.advance_phase(at, Pubkey.default(), 3)
codec.program_codec().decode_account("Checkpoint", bytes(138))
"""
    assert loaded_by(code) == "[]"


def test_anchorpy_is_imported_by_one_module():
    """pyheck and construct come with anchorpy; docs/decisions/0013 says how all of them leave."""
    wanted = re.compile(r"^\s*(?:from|import) (?:anchorpy|construct|pyheck)", re.MULTILINE)
    users = {
        path.name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if wanted.search(path.read_text())
    }
    assert users == {"anchor.py"}
