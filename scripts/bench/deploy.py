"""Times and lamports of deploys on solana-test-validator: whole, killed half way, and an upgrade.

python scripts/bench/deploy.py [PATH of solana-test-validator]
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.keyfiles import write_key
from troth_coordinator.chain import loader
from troth_coordinator.chain.program_image import packaged_image
from troth_localnet.errors import ValidatorMissingError
from troth_localnet.launcher import request
from troth_localnet.validator import ValidatorLauncher, ValidatorOptions

SOL = 10**9
KILLED_AT_BYTES = 300_000


def main() -> None:
    """Print one line for each deploy."""
    binary = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    try:
        with (
            ValidatorLauncher(ValidatorOptions(binary=binary)) as chain,
            tempfile.TemporaryDirectory() as name,
        ):
            chain.start({})
            measure(chain, Path(name))
    except ValidatorMissingError as error:
        print(f"skipped: {error}")


def measure(chain: ValidatorLauncher, folder: Path) -> None:
    """Deploy, upgrade what is there, and deploy once more with a kill in the middle."""
    owner = Keypair()
    write_key(folder / "owner.json", owner)
    chain.airdrop(owner.pubkey(), 100 * SOL)
    whole, killed = (folder / f"{name}.json" for name in ("whole", "killed"))
    for path in (whole, killed):
        write_key(path, Keypair())
    show("whole", *deployed(chain, folder, whole))
    older = folder / "older.so"
    program = Pubkey.from_string(str(json.loads(keys("show", whole))["address"]))
    # One byte of a text: it counts as other code, so all of it is sent.
    older.write_bytes(packaged_image("v3", program).replace(b"Error Code: ", b"Error code: ", 1))
    show("upgrade", *deployed(chain, folder, whole, "--image", str(older)))
    seconds = kill_half_way(chain, folder, killed, owner.pubkey())
    print(f"killed      {seconds:5.1f} s until its buffer held {KILLED_AT_BYTES} bytes")
    show("resumed", *deployed(chain, folder, killed))


def deployed(
    chain: ValidatorLauncher, folder: Path, key: Path, *options: str
) -> tuple[float, dict[str, object]]:
    """Run one deploy; return its seconds and what it said."""
    started = time.monotonic()
    done = subprocess.run(
        [*command(chain, folder, key), *options], capture_output=True, text=True, check=True
    )
    return time.monotonic() - started, json.loads(done.stdout)


def kill_half_way(chain: ValidatorLauncher, folder: Path, key: Path, owner: Pubkey) -> float:
    """Kill a deploy once its buffer holds so many bytes; return the seconds until then."""
    program = Pubkey.from_string(str(json.loads(keys("show", key))["address"]))
    buffer = str(loader.buffer_address(owner, program))
    seen = {"encoding": "base64", "commitment": "confirmed"}
    at = {**seen, "dataSlice": {"offset": KILLED_AT_BYTES, "length": 2_000}}
    empty = "A" * 100
    started = time.monotonic()
    with subprocess.Popen(
        command(chain, folder, key), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        while True:
            found = request(chain.rpc_url, "getAccountInfo", [buffer, at])
            value = found.get("value") if isinstance(found, dict) else None
            if isinstance(value, dict) and not str(value["data"][0]).startswith(empty):
                break
            time.sleep(0.05)
        child.kill()
    return time.monotonic() - started


def command(chain: ValidatorLauncher, folder: Path, key: Path) -> list[str]:
    """Return the words of a deploy."""
    words = [sys.executable, "-m", "troth_cli", "program", "deploy", "--yes", "--json"]
    named = ["--key", str(folder / "owner.json"), "--program-key", str(key)]
    return [*words, *named, "--rpc", chain.rpc_url]


def keys(*words: object) -> str:
    """Run `troth keys` and return its JSON."""
    asked = [sys.executable, "-m", "troth_cli", "keys", *map(str, words), "--json"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def show(name: str, seconds: float, said: dict[str, object]) -> None:
    """Print the line of one deploy."""
    facts = ("sbpf", "image_bytes", "chunks_to_send", "fees_lamports", "spent_lamports")
    print(f"{name:<10} {seconds:5.1f} s ", *(f" {fact} {said[fact]}" for fact in facts))


if __name__ == "__main__":
    main()
