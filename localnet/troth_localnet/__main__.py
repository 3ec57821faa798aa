"""`python -m troth_localnet`: the embedded chain as a process of its own.

Owns: the command line, the ready message on stdout (one JSON line), ending on signals.
Never: reads the environment. `troth localnet up` and embedded.py start it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import sys
import time
from pathlib import Path

from solders.pubkey import Pubkey

from troth_localnet.blocks import skip_every, skip_none
from troth_localnet.errors import LocalnetError, OptionError, PortInUseError
from troth_localnet.launcher import read_image
from troth_localnet.ledger import Ledger
from troth_localnet.rpc import RpcServer, ServerConfig
from troth_localnet.svm import Chain, ChainConfig

_DEFAULT_SLOT_MILLISECONDS = 400


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGINT, SIGTERM or, if asked, the end of stdin; 0, 1 refused, 2 bad option."""
    options = _parser().parse_args(arguments)
    try:
        asyncio.run(_serve(options))
    except LocalnetError as error:
        _say(_error_message(error))
        sys.stderr.write(f"troth_localnet: error: {error}\n")
        return 2 if isinstance(error, OptionError) else 1
    return 0


async def _serve(options: argparse.Namespace) -> None:
    chain, ledger = _chain(options)
    server = RpcServer(
        chain,
        ServerConfig(
            options.host, options.port, None if options.stepped else options.slot_milliseconds
        ),
    )
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    if options.until_stdin_ends is not None:
        await _watch_stdin(stopped, options.until_stdin_ends)
    await server.start()
    try:
        _say({"rpc_url": server.rpc_url, "ws_url": server.ws_url, "port": server.port})
        await stopped.wait()
    finally:
        await server.stop()
        if ledger is not None:
            ledger.close()


def _chain(options: argparse.Namespace) -> tuple[Chain, Ledger | None]:
    """Return a new chain, or the one that a ledger keeps, with its ledger."""
    config = ChainConfig(
        seed=options.seed,
        slot_milliseconds=options.slot_milliseconds,
        genesis_unix_timestamp=int(time.time()),
        skip=skip_none if options.skip_every is None else skip_every(options.skip_every),
    )
    images = {key: read_image(key, path) for key, path in options.program}
    if options.ledger is not None:
        ledger, kept = Ledger.open(options.ledger, config, images)
        return kept, ledger
    chain = Chain(config)
    for program_id, image in images.items():
        chain.add_program(program_id, image)
    return chain, None


async def _watch_stdin(stopped: asyncio.Event, scratch: Path) -> None:
    """End when the launcher closes stdin; remove its folder if the launcher was killed."""

    class Watcher(asyncio.Protocol):
        def connection_lost(self, exc: Exception | None) -> None:
            shutil.rmtree(scratch, ignore_errors=True)
            stopped.set()

    await asyncio.get_running_loop().connect_read_pipe(Watcher, sys.stdin)


def _error_message(error: LocalnetError) -> dict[str, object]:
    message: dict[str, object] = {
        "error": type(error).__name__,
        "expected": error.expected,
        "found": error.found,
        "next_step": error.next_step,
    }
    if isinstance(error, PortInUseError):
        message["port"] = error.port
    return message


def _say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m troth_localnet",
        description="A Solana network in one process: JSON-RPC on a loopback port, websocket on"
        " the next. Prints one JSON line with its addresses once it listens.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="loopback address to listen on")
    parser.add_argument("--port", type=int, default=8899, help="JSON-RPC port; 0 picks a free pair")
    parser.add_argument(
        "--slot-milliseconds",
        type=int,
        default=_DEFAULT_SLOT_MILLISECONDS,
        help="length of a slot, 20 to 400",
    )
    parser.add_argument(
        "--stepped", action="store_true", help="no clock: slots pass by trothAdvanceSlots only"
    )
    parser.add_argument("--skip-every", type=int, help="leave the last slot of each N blockless")
    parser.add_argument("--seed", type=bytes.fromhex, default=b"", help="hex; makes hashes differ")
    parser.add_argument(
        "--program",
        type=_program,
        action="append",
        default=[],
        metavar="ID=FILE",
        help="a program image to install; may be repeated",
    )
    parser.add_argument(
        "--ledger",
        type=Path,
        metavar="FOLDER",
        help="keep the chain here, and go on with the one that is there",
    )
    parser.add_argument(
        "--until-stdin-ends",
        type=Path,
        metavar="FOLDER",
        help="end when stdin is closed, and remove the launcher's FOLDER then",
    )
    return parser


def _program(text: str) -> tuple[Pubkey, Path]:
    name, separator, path = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"expected ID=FILE, found {text!r}")
    return Pubkey.from_string(name), Path(path)


if __name__ == "__main__":
    sys.exit(main())
