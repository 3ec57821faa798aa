"""Fetching: the bytes of one item from anybody who has it, checked by their address.

Owns: whom to ask, for how many bytes, and whether the maker of a header has signed it.
Never: judges what an item means.
Next: `keeper.py`, which stores; `../transport/exchange.py`, which asks.
"""

from dataclasses import dataclass, field
from typing import Final

from troth_attestation import header as headers
from troth_attestation.errors import HeaderError, PieceListError
from troth_client.archive.book import Book
from troth_client.archive.errors import FalseSignatureError, NotYetError, TooEarlyError
from troth_client.archive.folder import ByteStore
from troth_client.archive.items import Item
from troth_client.archive.sizes import Sizes
from troth_client.errors import ClientError
from troth_client.network.expecting import SIGNED_HEADER_BYTES
from troth_client.run_files.errors import RunFileError
from troth_client.run_files.fetch import parse_config
from troth_client.run_files.files import LIMITS
from troth_client.transport.base import BlobKind, Transport
from troth_client.transport.errors import FetchError

_FOREVER: Final = 2**63
_MOST_WHY: Final = 300


@dataclass(frozen=True, slots=True)
class KeptHeader:
    """A header that lies here under its address, which says nothing of the signature."""

    data: bytes

    @property
    def header(self) -> headers.Header:
        """The header in it."""
        return headers.decode(self.data[: headers.HEADER_BYTES])

    @property
    def is_signed(self) -> bool:
        """Whether the key that it names has signed it."""
        return not has_false_signature(self.data)


@dataclass(slots=True)
class Fetching:
    """Fetches items. `others` are hubs, stores and archives that the user named.

    `owns_transport`: what it fetched is forgotten after each look. A participant's transport keeps
    its bytes by rules of its own.
    """

    transport: Transport
    store: ByteStore
    others: tuple[str, ...] = ()
    owns_transport: bool = True
    sizes: Sizes | None = None
    trouble: str = "the run's config is not here"
    _piece_bytes: dict[bytes, int] = field(default_factory=dict)

    async def fetch(self, item: Item, book: Book) -> bytes:
        """Return the bytes of an item.

        Raises NotYetError, TransportError, FalseSignatureError where a header is all that holders
        have.
        """
        holders = self._holders(book, item.participant)
        if item.kind is BlobKind.HEADER:
            return await self._header(item, holders)
        if item.kind is BlobKind.PIECES:
            return await self._list(item, holders)
        num_bytes = self._num_bytes(item, book)
        return await self.transport.fetch(item.name, holders, num_bytes, bytes)

    def forget(self) -> None:
        """Free what the transport holds in memory."""
        if self.owns_transport:
            self.transport.drop_before(_FOREVER)

    def read_config(self, key: bytes) -> None:
        """Learn the sizes of the run from its config, once that is here."""
        data = None if self.sizes else self.store.get("config", key, LIMITS[BlobKind.CONFIG])
        if data is None:
            return
        try:
            self.sizes = Sizes.of(parse_config(data))
        except RunFileError as error:
            self.trouble = str(error)
            return
        stores = [one for one in self.sizes.relays if "://" in one and not one.startswith("http")]
        self.transport.use_stores(stores, signs=False)

    def header(self, key: bytes) -> KeptHeader | None:
        """Return a header that is here, whoever has signed it."""
        data = self.store.get("header", key, SIGNED_HEADER_BYTES)
        return None if data is None else KeptHeader(data)

    def start(self, book: Book) -> list[Item]:
        """Return the list of the weights that a run starts from, where they are given."""
        is_given = self.sizes is not None and self.sizes.given is not None
        return [Item(BlobKind.PIECES, book.genesis_root)] if is_given else []

    def pieces(self, root: bytes) -> list[Item] | None:
        """Return the pieces of a list that is here; None where it is damaged."""
        given = None if self.sizes is None else self.sizes.given
        data = given and self.store.get("pieces", root, given.list_bytes)
        if given is None or not data:
            return None
        try:
            found = given.pieces(root, data)
        except PieceListError:
            return None
        self._piece_bytes |= {item.key: num_bytes for item, num_bytes in found.items()}
        return list(found)

    def _holders(self, book: Book, first: int | None) -> list[str]:
        """Return whom to ask: the maker, what the user and the config name, then everybody."""
        of_config = () if self.sizes is None else self.sizes.relays
        own = book.endpoints.get(-1 if first is None else first, "")
        found = [own, *self.others, *of_config, *book.endpoints.values()]
        return list(dict.fromkeys(one for one in found if one))

    async def _header(self, item: Item, holders: list[str]) -> bytes:
        """Return a header that its maker has signed.

        One with a false signature is refused, so the transport blames its holder and never serves
        it to others.
        """
        false: list[bytes] = []

        def check(data: bytes) -> bytes:
            try:
                return _check_signature(data)
            except HeaderError:
                false.append(data)
                raise

        try:
            return await self.transport.fetch(item.name, holders, SIGNED_HEADER_BYTES, check)
        except FetchError as error:
            if false:
                raise FalseSignatureError(false[0]) from error
            raise

    async def _list(self, item: Item, holders: list[str]) -> bytes:
        """Return a piece list under its root."""
        given = None if self.sizes is None else self.sizes.given
        if given is None:
            raise TooEarlyError(self.trouble)

        def check(data: bytes) -> bytes:
            given.pieces(item.key, data)
            return data

        return await self.transport.fetch(item.name, holders, given.list_bytes, check)

    def _num_bytes(self, item: Item, book: Book) -> int:
        if item.kind in LIMITS:
            return LIMITS[item.kind]
        if self.sizes is None:
            raise TooEarlyError(self.trouble)
        if item.kind is BlobKind.PIECE:
            return self._piece_bytes[item.key]
        index = -1 if item.participant is None else item.participant
        key = book.header_of(item.round, index)
        kept = None if key is None else self.header(key)
        if kept is None:
            raise TooEarlyError("the header that says its size is not here")
        header = kept.header
        if item.kind is BlobKind.PAYLOAD:
            if header.payload_bytes != self.sizes.payload_bytes:
                raise NotYetError(f"its header names {header.payload_bytes} bytes, not the run's")
            return self.sizes.payload_bytes
        seed = book.seed_of(item.round)
        if seed is None:
            raise TooEarlyError("the seed of its round is not in the ledger")
        return self.sizes.opening_bytes(seed, header)


def reason(error: ClientError) -> str:
    """Return why an item is not here, short enough for a list."""
    return error.found[:_MOST_WHY]


def _check_signature(data: bytes) -> bytes:
    header = headers.decode(data[: headers.HEADER_BYTES])
    headers.verify_signature(header, data[headers.HEADER_BYTES :])
    return data


def has_false_signature(data: bytes) -> bool:
    """Tell whether the key that a header names has not signed it."""
    try:
        _check_signature(data)
    except HeaderError:
        return True
    return False
