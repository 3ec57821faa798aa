"""Names of hosts are looked up in threads of their own.

Owns: those threads. Never: decides which address may be connected to; `guard.py` does.
Next: `http.py` and `reach.py`, whose sessions look names up here.

A member may announce a name whose servers never answer. Each look at it keeps a thread for half a
minute, whatever its caller's patience. In the threads of everything else, six such names would keep
us from serving and computing.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

_MOST_AT_A_TIME: Final = 32
_THREADS: Final = ThreadPoolExecutor(_MOST_AT_A_TIME, "names")
_NUMERIC: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class Names(AbstractResolver):
    """The resolver of one session."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name. Raises OSError."""
        ask = partial(
            socket.getaddrinfo,
            host,
            port,
            family=family,
            type=socket.SOCK_STREAM,
            flags=socket.AI_ADDRCONFIG,
        )
        found = await asyncio.get_running_loop().run_in_executor(_THREADS, ask)
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=_NUMERIC,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Nothing to close: the threads are everybody's."""
