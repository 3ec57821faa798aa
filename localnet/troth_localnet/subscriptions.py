"""Websocket subscriptions and their notifications.

Owns: the subscribe and unsubscribe methods, and the notifications, in the shape solders parses.
Never: touches sockets; it passes texts to the `Outbox` that the server gave it.
Next: rpc.py connects outboxes to websockets.

Our clients take notifications of a run as a hint to look, and do without if there are none.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Literal

from pydantic import Field
from solders.pubkey import Pubkey
from solders.signature import Signature

from troth_localnet.account_json import account_json, keyed_account_json, passes
from troth_localnet.history import LandedTransaction
from troth_localnet.jsonrpc import INVALID_REQUEST, JsonRpcError, Method
from troth_localnet.methods.context import Node
from troth_localnet.methods.params import (
    AccountConfig,
    Config,
    Params,
    ProgramAccountsConfig,
    parse_config,
    parse_pubkey,
    refusal,
)
from troth_localnet.values import Json

MAX_PER_CONNECTION: Final = 1_000

Outbox = Callable[[str], None]
"""Takes one text for a connection; must not block."""

Kind = Literal["account", "logs", "program", "root", "signature", "slot"]
Topic = tuple[Kind, Pubkey | Signature | None]


class MentionsFilter(Config):
    """Logs of transactions that name one address."""

    mentions: list[str] = Field(min_length=1, max_length=1)


class SignatureConfig(Config):
    """Whether to notify of reception too; here it coincides with execution, so it is not sent."""

    enable_received_notification: bool | None = None


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription of one connection."""

    number: int
    topic: Topic
    connection: Connection
    config: Config


@dataclass(eq=False, slots=True)
class Connection:
    """One websocket: its outbox and its subscriptions."""

    outbox: Outbox
    subscriptions: dict[int, Subscription] = field(default_factory=dict)


class SubscriptionHub:
    """Keeps all subscriptions of a node; a ChainObserver that notifies them of changes."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._numbers = itertools.count(1)
        self._by_topic: defaultdict[Topic, dict[int, Subscription]] = defaultdict(dict)

    def lookup(self, connection: Connection, name: str) -> Method | None:
        """Return the subscribe or unsubscribe method of that name, bound to a connection."""
        for kind, read in self._readers().items():
            if name == f"{kind}Subscribe":
                return partial(self._subscribe, connection, read)
            if name == f"{kind}Unsubscribe":
                return partial(self._unsubscribe, connection)
        return None

    def drop(self, connection: Connection) -> None:
        """Forget all subscriptions of a closed connection."""
        for subscription in list(connection.subscriptions.values()):
            self._remove(subscription)

    def tell_if_landed(self, connection: Connection) -> None:
        """Answer signature subscriptions whose transaction landed before they were made."""
        for subscription in list(connection.subscriptions.values()):
            kind, key = subscription.topic
            if kind != "signature" or not isinstance(key, Signature):
                continue
            landed = self._node.chain.history.get(key)
            if landed is not None:
                self._tell_signature(subscription, landed)

    def transaction_landed(self, landed: LandedTransaction, changed: Sequence[Pubkey]) -> None:
        """Notify of accounts, logs and the signature."""
        for address in changed if self._wants("account", "program") else ():
            self._tell_account(address)
        logs: Json = {
            "signature": str(landed.signature),
            "err": landed.outcome.error,
            "logs": landed.outcome.logs,
        }
        mentioned: list[Topic] = [("logs", key) for key in set(landed.keys.all)]
        for topic in [("logs", None), *mentioned]:
            for subscription in self._of(topic):
                self._tell(subscription, self._node.with_context(logs))
        for subscription in self._of(("signature", landed.signature)):
            self._tell_signature(subscription, landed)

    def slot_opened(self, slot: int, parent: int) -> None:
        """Notify of the new slot; its parent is the newest root, since sealed blocks are final."""
        for subscription in self._of(("slot", None)):
            self._tell(subscription, {"parent": parent, "root": parent, "slot": slot})
        for subscription in self._of(("root", None)):
            self._tell(subscription, parent)

    def _readers(self) -> dict[Kind, Callable[[Params], tuple[Topic, Config]]]:
        return {
            "account": lambda p: (("account", p.pubkey(0)), p.config(1, AccountConfig)),
            "program": lambda p: (("program", p.pubkey(0)), p.config(1, ProgramAccountsConfig)),
            "signature": lambda p: (("signature", p.signature(0)), p.config(1, SignatureConfig)),
            "logs": _read_logs,
            "slot": lambda _: (("slot", None), Config()),
            "root": lambda _: (("root", None), Config()),
        }

    def _subscribe(
        self,
        connection: Connection,
        read: Callable[[Params], tuple[Topic, Config]],
        values: list[Json],
    ) -> Json:
        topic, config = read(Params(values))
        if len(connection.subscriptions) >= MAX_PER_CONNECTION:
            found = f"a connection may hold {MAX_PER_CONNECTION} subscriptions; unsubscribe first"
            raise JsonRpcError(INVALID_REQUEST, found)
        subscription = Subscription(next(self._numbers), topic, connection, config)
        connection.subscriptions[subscription.number] = subscription
        self._by_topic[topic][subscription.number] = subscription
        return subscription.number

    def _unsubscribe(self, connection: Connection, values: list[Json]) -> Json:
        number = Params(values).integer(0, "subscription")
        subscription = connection.subscriptions.get(number)
        if subscription is None:
            raise refusal(f"no subscription {number} on this connection")
        self._remove(subscription)
        return True

    def _remove(self, subscription: Subscription) -> None:
        del subscription.connection.subscriptions[subscription.number]
        same_topic = self._by_topic[subscription.topic]
        del same_topic[subscription.number]
        if not same_topic:
            del self._by_topic[subscription.topic]

    def _wants(self, *kinds: Kind) -> bool:
        return any(topic[0] in kinds for topic in self._by_topic)

    def _of(self, topic: Topic) -> list[Subscription]:
        return list(self._by_topic[topic].values()) if topic in self._by_topic else []

    def _tell_account(self, address: Pubkey) -> None:
        account = self._node.chain.accounts.get(address)
        if account is None:
            return self._tell_gone(address)
        for subscription in self._of(("account", address)):
            config = subscription.config
            if isinstance(config, AccountConfig):
                written = account_json(account, config)
                self._tell(subscription, self._node.with_context(written))
        for subscription in self._of(("program", account.owner)):
            config = subscription.config
            if isinstance(config, ProgramAccountsConfig) and passes(account, config.filters or ()):
                written = keyed_account_json(address, account, config)
                self._tell(subscription, self._node.with_context(written))
        return None

    def _tell_gone(self, address: Pubkey) -> None:
        """Notify of a closed account as nodes do: empty, owned by the system program."""
        empty: Json = {
            "data": ["", "base64"],
            "executable": False,
            "lamports": 0,
            "owner": str(Pubkey.default()),
            "rentEpoch": 0,
            "space": 0,
        }
        for subscription in self._of(("account", address)):
            self._tell(subscription, self._node.with_context(empty))

    def _tell_signature(self, subscription: Subscription, landed: LandedTransaction) -> None:
        """Notify once; the subscription ends with it."""
        self._tell(subscription, self._node.with_context({"err": landed.outcome.error}))
        self._remove(subscription)

    def _tell(self, subscription: Subscription, result: Json) -> None:
        message = {
            "jsonrpc": "2.0",
            "method": f"{subscription.topic[0]}Notification",
            "params": {"result": result, "subscription": subscription.number},
        }
        subscription.connection.outbox(json.dumps(message, separators=(",", ":")))


def _read_logs(params: Params) -> tuple[Topic, Config]:
    wanted = params.get(0)
    config = params.config(1, Config)
    if isinstance(wanted, str):
        if wanted not in ("all", "allWithVotes"):
            raise refusal('expected "all", "allWithVotes" or {"mentions": [address]}')
        return ("logs", None), config
    mentions = parse_config(wanted, MentionsFilter).mentions
    return ("logs", parse_pubkey(mentions[0])), config
