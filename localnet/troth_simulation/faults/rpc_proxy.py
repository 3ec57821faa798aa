"""A proxy for JSON-RPC that shows an old chain, swallows transactions or answers with a status.

Owns: the recent answers of the node above, and the count of requests by method.
Never: delays, cuts or damages: a `TcpProxy` before it does. Websockets are not passed on.
Next: `trouble.py` for the effects.
"""

from __future__ import annotations

import base64
import json
from collections import OrderedDict, deque
from typing import Any, Final, Self

import aiohttp
from aiohttp import web
from solders.transaction import VersionedTransaction

from troth_coordinator.chain import base58
from troth_localnet.values import Json
from troth_simulation.faults.proxy import Traffic
from troth_simulation.faults.trouble import ANSWERS, Effect, Trouble

MAX_BODY_BYTES: Final = 64 * 1024
_MAX_KEYS: Final = 128
_MAX_SLOTS: Final = 64
_SECONDS: Final = 30.0
_STATUSES: Final = "getSignatureStatuses"
_SEND: Final = "sendTransaction"
_SLOT: Final = "getSlot"

Reply = dict[str, Any]


class _Past:
    """The answers of the last slots, by method and parameters."""

    def __init__(self) -> None:
        self.slot = 0
        self._answers: OrderedDict[str, deque[tuple[int, Json]]] = OrderedDict()

    def keep(self, key: str, result: Json, slot: int) -> None:
        """Remember a result under the slot in it, or else under this one."""
        context = result.get("context") if isinstance(result, dict) else None
        if isinstance(context, dict):
            slot = int(str(context["slot"]))
        self.slot = max(self.slot, slot)
        answers = self._answers.setdefault(key, deque())
        self._answers.move_to_end(key)
        answers.append((slot, result))
        while answers[0][0] < self.slot - _MAX_SLOTS and len(answers) > 1:
            answers.popleft()
        while len(self._answers) > _MAX_KEYS:
            self._answers.popitem(last=False)

    def at(self, key: str, slot: int) -> Json:
        """Return the newest result that is no newer than a slot, else the oldest; or None."""
        answers = self._answers.get(key)
        if not answers:
            return None
        return next((result for at, result in reversed(answers) if at <= slot), answers[0][1])


class RpcProxy:
    """Answers JSON-RPC at `url` with what the node at `upstream` says, or said.

    Use it as an async context manager. A frozen or lagging node still forwards transactions, and
    does not know the status of one that landed after the slot that it shows.
    """

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.traffic = Traffic()
        self.port = 0
        self._trouble: Trouble | None = None
        self._frozen_at = 0
        self._past = _Past()
        self._session: aiohttp.ClientSession | None = None
        self._runner: web.AppRunner | None = None

    def set(self, trouble: Trouble | None) -> None:
        """Answer with this trouble from now on; None: as the node does.

        Raises ValueError for an effect on a line.
        """
        if trouble is not None and trouble.effect not in ANSWERS:
            raise ValueError(f"expected an effect on answers, found {trouble.effect}: see TcpProxy")
        self._trouble = trouble
        self._frozen_at = self._past.slot

    async def __aenter__(self) -> Self:
        """Listen on a free port of loopback."""
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        self._session = aiohttp.ClientSession(timeout=timeout, trust_env=False)
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.router.add_post("/", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening and close the connections to the node."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._session is not None:
            await self._session.close()

    async def _handle(self, request: web.Request) -> web.Response:
        try:
            body = await request.read()
        except ConnectionError:
            return web.Response(status=400)  # the caller died: nobody reads this
        call = json.loads(body)
        method = str(call.get("method")) if isinstance(call, dict) else "batch"
        self.traffic.requests[method] += 1
        self.traffic.bytes_up[method] += len(body)
        answer = await self._answer(method, call, body)
        self.traffic.bytes_down[method] += len(answer.body or b"")  # type: ignore[arg-type]
        return answer

    async def _answer(self, method: str, call: Reply, body: bytes) -> web.Response:
        """Answer one call, as the trouble wants it."""
        trouble = self._trouble
        if trouble is not None and trouble.effect is Effect.STATUS:
            return web.Response(status=int(trouble.amount), text="the node is in trouble\n")
        if trouble is not None and trouble.effect is Effect.SWALLOW and method == _SEND:
            return _reply(call, _signature(call))
        try:
            text = await self._ask(body)
        except (aiohttp.ClientError, TimeoutError):
            return web.Response(status=502, text="no node\n")
        is_read = method not in (_SEND, "batch")
        return (is_read and self._old(method, call, text)) or web.Response(
            text=text, content_type="application/json"
        )

    def _old(self, method: str, call: Reply, text: str) -> web.Response | None:
        """Remember what the node says; return what it is to say, None for just that."""
        result = json.loads(text).get("result")
        if result is None:
            return None
        key = f"{method} {json.dumps(call.get('params'))}"
        if not self._is_frozen:
            self._past.keep(key, result, result if method == _SLOT else self._past.slot)
        slot = self._shown_slot()
        if slot is None:
            return None
        if method == _STATUSES:
            return _reply(call, _known(result, slot))
        old = self._past.at(key, slot)
        return None if old is None else _reply(call, old)

    async def _ask(self, body: bytes) -> str:
        if self._session is None:
            raise RuntimeError("expected a started proxy, found one that is not: use `async with`")
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self.upstream, data=body, headers=headers) as answer:
            return await answer.text()

    @property
    def _is_frozen(self) -> bool:
        return self._trouble is not None and self._trouble.effect is Effect.FREEZE

    def _shown_slot(self) -> int | None:
        """Return the newest slot that may be shown, None for all."""
        trouble = self._trouble
        if self._is_frozen:
            return self._frozen_at
        if trouble is not None and trouble.effect is Effect.LAG:
            return self._past.slot - int(trouble.amount)
        return None


def _known(result: Reply, slot: int) -> Reply:
    """Return statuses without those of transactions that landed after a slot."""
    values = [one if one is not None and one["slot"] <= slot else None for one in result["value"]]
    return {"context": {**result["context"], "slot": slot}, "value": values}


def _signature(call: Reply) -> str:
    """Return the signature that a node would answer with."""
    raw, *options = call["params"]
    is_base64 = any(one.get("encoding") == "base64" for one in options)
    data = base64.b64decode(raw) if is_base64 else base58.decode(raw)
    return str(VersionedTransaction.from_bytes(data).signatures[0])


def _reply(call: Reply, result: Json) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": call.get("id"), "result": result})
