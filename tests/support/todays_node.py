"""The embedded chain behind HTTP, answering like the RPC nodes of Agave 4.2 where they differ.

Owns: transactions of version 1 (SIMD-0385), and reasons of failures as Agave 4 writes them. LiteSVM
is too old to make either, so only the answers are changed. Never: changes what has happened.
Next: hostile_rpc.py, which serves.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from solders.signature import Signature

from support.hostile_rpc import HostileServer, Request, http
from troth_localnet.jsonrpc import Method, handle
from troth_localnet.methods.context import Node
from troth_localnet.methods.registry import lookup
from troth_localnet.svm import Chain

Change = Callable[[Any], Any]
_OLD_REASON = re.compile(r'\{"BorshIoError":"[^"]*"\}')


class TodaysNode(HostileServer):
    """A node whose answers about some transactions differ.

    `versions`: signature to a version that LiteSVM does not know. `records`: signature to what
    becomes of the result of getTransaction. `lists`: what becomes of each page of a list.
    """

    def __init__(self, chain: Chain) -> None:
        super().__init__(self._answer)
        self._node = Node(chain)
        self.versions: dict[str, int] = {}
        self.records: dict[str, Change] = {}
        self.lists: Change | None = None

    def asked_for(self, signature: Signature) -> int:
        """How often its record was asked for."""
        return sum(
            one["method"] == "getTransaction" and one["params"][0] == str(signature)
            for one in self.requests
        )

    def _lookup(self, name: str) -> Method | None:
        return lookup(self._node, name)

    def _answer(self, request: Request) -> bytes:
        text = handle(json.dumps(request), self._lookup)
        reply = json.loads(_OLD_REASON.sub('"BorshIoError"', text))
        if request["method"] == "getTransaction":
            reply = self._record(reply, *request["params"])
        elif request["method"] == "getSignaturesForAddress" and self.lists:
            reply["result"] = self.lists(reply["result"])
        return http(json.dumps(reply).encode())

    def _record(self, reply: Any, signature: str, config: dict[str, Any]) -> Any:
        version = self.versions.get(signature)
        if version is not None and config["maxSupportedTransactionVersion"] < version:
            message = f"Transaction version ({version}) is not supported by the requesting client."
            return {"id": reply["id"], "error": {"code": -32015, "message": message}}
        if version is not None:
            reply["result"] = _of_version(reply["result"], version)
        if signature in self.records:
            reply["result"] = self.records[signature](reply["result"])
        return reply


def _of_version(result: Any, version: int) -> Any:
    """The shape of version 1: what it may spend stands in the message, and nothing is looked up."""
    message = result["transaction"]["message"]
    message.pop("addressTableLookups", None)
    message["transactionConfig"] = {"computeUnitLimit": 200_000, "heapSize": None}
    return {**result, "version": version}
