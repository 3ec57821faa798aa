"""Start-up and throughput of the embedded chain: `python scripts/bench/chain.py [--transfers N]`.

Owns: the seconds from nothing to an answering chain with the program, and transfers per second over
its JSON-RPC from one client. Never: a claim; those go to docs/results.md with their log.
Next: `localnet/troth_localnet/embedded.py`.
"""

import argparse
import asyncio
import statistics
import time

from solders.hash import Hash
from solders.keypair import Keypair
from solders.message import Message
from solders.system_program import TransferParams, transfer
from solders.transaction import Transaction

from troth_coordinator import artifacts
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.layouts import program_layout
from troth_localnet.embedded import EmbeddedLauncher, EmbeddedOptions

SOL = 10**9
NUM_STARTS = 5
SLOT_MILLISECONDS = 400


def main() -> None:
    """Print start-up and throughput."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transfers", type=int, default=300)
    transfers = parser.parse_args().transfers
    program = {program_layout().program_id: artifacts.path(artifacts.PROGRAM_V0)}
    starts = []
    for number in range(NUM_STARTS):
        with EmbeddedLauncher(EmbeddedOptions(slot_milliseconds=SLOT_MILLISECONDS)) as chain:
            begun = time.perf_counter()
            chain.start(program)
            starts.append(time.perf_counter() - begun)
            if number == NUM_STARTS - 1:
                asyncio.run(measure(chain, transfers))
    print(
        f"start-up with the program  {statistics.median(starts):.2f} s, worst {max(starts):.2f} s"
    )


async def measure(chain: EmbeddedLauncher, transfers: int) -> None:
    """Send transfers one after the other, then all at once."""
    payer = Keypair()
    chain.airdrop(payer.pubkey(), 10 * SOL)
    async with HttpRpc(chain.rpc_url) as rpc:
        blockhash, _ = await rpc.latest_blockhash()
        raw = [payment(payer, blockhash, number) for number in range(2 * transfers)]
        begun = time.perf_counter()
        for one in raw[:transfers]:
            await rpc.send(one)
        alone = time.perf_counter() - begun
        begun = time.perf_counter()
        await asyncio.gather(*(rpc.send(one) for one in raw[transfers:]))
        together = time.perf_counter() - begun
    print(f"transfers one by one       {transfers / alone:.0f} a second")
    print(f"transfers at once          {transfers / together:.0f} a second")


def payment(payer: Keypair, blockhash: Hash, number: int) -> bytes:
    """Return a signed transfer to ourselves, different for each number."""
    one = TransferParams(from_pubkey=payer.pubkey(), to_pubkey=payer.pubkey(), lamports=number)
    message = Message.new_with_blockhash([transfer(one)], payer.pubkey(), blockhash)
    return bytes(Transaction([payer], message, blockhash))


if __name__ == "__main__":
    main()
