"""Filling a buffer: all chunks of an image, several under way at a time, until it reads back equal.

Owns: the windows of transactions, sending them again, and signing them anew once they expired.
Never: creates or closes the buffer. Next: `deploy.py`.

    read the buffer back -> chunks that it lacks -> windows: sign, send, wait -> read it back
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.errors import DeployError
from troth_cli.view.output import Report
from troth_cli.workflows.deploy_plan import missing_chunks
from troth_coordinator.chain import loader
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import TransactionRejectedError
from troth_coordinator.chain.program_errors import sort_failure
from troth_coordinator.chain.rpc import Rpc
from troth_coordinator.chain.transactions import ComputeBudget, SignedTransaction, assemble

WINDOW: Final = 32
"""Chunks under way at once; one call asks for the state of all of them."""
MAX_PASSES: Final = 5
"""So often chunks that did not land are sent again."""
POLL_SECONDS: Final = 0.2
AGAIN_EVERY: Final = 10
"""Polls between sending again, since clusters drop transactions, unless the blockhash expired."""
MOST_POLLS: Final = 900
"""Three minutes, longer than a blockhash lives: the height that a node tells may stand still."""
_HARMLESS = frozenset({"AlreadyProcessed", "BlockhashNotFound"})


async def fill_buffer(rpc: Rpc, key: Keypair, buffer: Pubkey, image: bytes, report: Report) -> None:
    """Write what the buffer lacks, and read it back; `key` signs and pays.

    Raises DeployError where chunks never land, and ChainError.
    """
    num_chunks = len(range(0, len(image), loader.CHUNK_BYTES))
    for _pass in range(MAX_PASSES):
        missing = await _missing(rpc, buffer, image)
        if not missing:
            return
        for first in range(0, len(missing), WINDOW):
            report(num_chunks - len(missing) + first, num_chunks, "")
            window = missing[first : first + WINDOW]
            await _write(rpc, key, buffer, {at: image[at:][: loader.CHUNK_BYTES] for at in window})
        report(num_chunks, num_chunks, "")
    left = len(await _missing(rpc, buffer, image))
    if left:
        raise DeployError(
            "every chunk to land",
            f"{left} that did not, in {MAX_PASSES} passes",
            "Repeat the command, later or with another --rpc.",
            f"buffer {buffer}",
        )


async def _missing(rpc: Rpc, buffer: Pubkey, image: bytes) -> tuple[int, ...]:
    _slot, (account,) = await rpc.get_accounts([buffer])
    held = None if account is None else loader.read_buffer(account)
    return missing_chunks(None if held is None else held.code, image)


async def _write(rpc: Rpc, key: Keypair, buffer: Pubkey, chunks: Mapping[int, bytes]) -> None:
    """Send one window under one blockhash and wait until each landed, or all have expired."""
    blockhash = await rpc.latest_blockhash()
    budget = ComputeBudget.packaged(program_codec())
    signed = [
        assemble([loader.write(buffer, key.pubkey(), at, code)], [key], blockhash, budget)
        for at, code in chunks.items()
    ]
    for error in await asyncio.gather(*(_send(rpc, one) for one in signed)):
        if error is not None:
            raise sort_failure(
                error.failure, error.logs, key.pubkey(), program_codec(), landed=False
            ) from error
    await _await_all(rpc, signed)


async def _send(rpc: Rpc, signed: SignedTransaction) -> TransactionRejectedError | None:
    """Hand one chunk to the node; return its refusal, unless the next pass makes up for it."""
    try:
        await rpc.send(signed.raw)
    except TransactionRejectedError as error:
        return None if error.failure.kind in _HARMLESS else error
    return None


async def _await_all(rpc: Rpc, signed: Sequence[SignedTransaction]) -> None:
    waiting = list(signed)
    for poll in range(1, MOST_POLLS + 1):
        statuses = await rpc.statuses([one.signature for one in waiting])
        # One that failed on chain is missing when the buffer is read back.
        waiting = [
            one
            for one, status in zip(waiting, statuses, strict=True)
            if status is None or status.finality == "processed"
        ]
        if not waiting:
            return
        if poll % AGAIN_EVERY == 0:
            if await rpc.block_height() > signed[0].last_valid_height:
                return
            await asyncio.gather(*(_send(rpc, one) for one in waiting))
        await asyncio.sleep(POLL_SECONDS)
