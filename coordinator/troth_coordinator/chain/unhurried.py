"""`UnhurriedRpc`: a `FailoverRpc` that waits where every node asks it to.

Owns: for how long a command waits. A participant does not: it looks again by itself.
Never: waits for a node that is away; that ends a command with its error.
Next: failover.py, which asks; rpc_health.py for the time that a node names.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from troth_coordinator.chain.errors import RpcLimitedError
from troth_coordinator.chain.failover import (
    SILENT_SECONDS,
    Answer,
    FailoverRpc,
    Judge,
    Request,
)

PATIENCE_SECONDS: Final = 60.0
"""A command waits so long in all for one answer."""
FIRST_SECONDS: Final = 0.5
"""The first wait, where a node names no time."""


class UnhurriedRpc(FailoverRpc):
    """Several nodes as one `Rpc`, for commands: public nodes limit the first look of a newcomer."""

    patience_seconds: float = math.inf
    """All waits together may still take so long: for a command that asks on without an answer."""

    async def _ask(
        self,
        request: Request[Answer],
        judge: Judge[Answer] | None = None,
        limit: float = SILENT_SECONDS,
    ) -> Answer:
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_SECONDS
        while True:
            try:
                return await super()._ask(request, judge, limit)
            except RpcLimitedError as error:
                pause = error.retry_after_seconds or FIRST_SECONDS
                if pause > min(end - loop.time(), self.patience_seconds):
                    raise
            self.patience_seconds -= pause
            await asyncio.sleep(pause)
