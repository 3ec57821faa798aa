"""Importing the client must stay cheap: `troth --help` and `troth status` pay for it."""

import subprocess
import sys

HEAVY = ("anchorpy", "solana", "httpx", "construct", "torch")


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
at = addresses.RunAddresses.create(b"r" * 32, 8)
instructions.tick(at, Pubkey.default(), 3)
codec.program_codec().decode_account("Checkpoint", bytes(138))
"""
    assert loaded_by(code) == "[]"
