"""Importing the client must stay cheap: `troth --help` and `troth status` pay for it."""

import subprocess
import sys

HEAVY = ("anchorpy", "solana", "httpx", "construct", "torch")


def test_nothing_heavy_is_imported_with_the_client():
    code = (
        "import sys, troth_coordinator.chain.client, troth_coordinator.chain.operations\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
