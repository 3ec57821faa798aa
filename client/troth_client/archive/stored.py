"""The bytes of an archive that lies in an object store: `troth archive --out URL`.

Owns: what lies there by name. Never: appends to an object: ledger and lists are kept in the working
folder, and copied.
Next: `mirror.py`, which copies them; `store_ledger.py` for the start; `keeper.py`, which fills it.

Headers and the run's files are small, and a start reads all of them. So the working folder keeps
them, too.
"""

from typing import Final

from troth_client.archive.folder import MISSING_FILE, ArchiveFolder, is_name
from troth_client.archive.items import Item, short
from troth_client.runtime.files import Closable
from troth_client.transport.base import BlobId, BlobKind
from troth_client.transport.remote import RemoteStore
from troth_coordinator.ledger.file import LEDGER_FILE

MOST_LEDGER_BYTES: Final = 64 * 2**30
MOST_LIST_BYTES: Final = 256 * 2**20
_SMALL: Final = (BlobKind.HEADER, BlobKind.CONFIG, BlobKind.MANIFEST, BlobKind.PIECES)


class StoredBytes(Closable):
    """A `ByteStore` at the address of an object store. One process at a time writes it.

    Methods block: call them in threads, but for `size` and `forget`.
    """

    def __init__(self, url: str, folder: ArchiveFolder) -> None:
        """List what is there. Raises HolderError."""
        self._folder = folder
        self._store = RemoteStore(url)
        self._sizes: dict[bytes, int] = {}
        self._numbers: dict[int, int] = {}
        try:
            for kind in BlobKind:
                self._list(kind)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connections."""
        self._store.close()

    def size(self, kind: str, key: bytes) -> int | None:
        """See ByteStore.size."""
        return self._sizes.get(short(kind, key)) or None

    def get(self, kind: str, key: bytes, most_bytes: int) -> bytes | None:
        """See ByteStore.get."""
        found = self._folder.get(kind, key, most_bytes)
        if found is None and self.size(kind, key) is not None:
            name = BlobId(0, BlobKind(kind), key)
            found = self._store.read(name, most_bytes) or None
            if found is not None:
                self._keep(Item(name.kind, key), found)
        return found

    def put(self, item: Item, data: bytes) -> None:
        """See ByteStore.put. Raises HolderError as well."""
        self._store.put(item.address, data)
        self._keep(item, data)
        self._note(item.short, len(data))

    def forget(self, kind: str, key: bytes) -> None:
        """See ByteStore.forget."""
        self._sizes.pop(short(kind, key), None)
        self._store.forget(BlobId(0, BlobKind(kind), key).address)

    def fetch_lists(self) -> None:
        """Fetch the lists there are into the folder. Raises HolderError, DiskFullError."""
        for name, most in ((MISSING_FILE, MOST_LIST_BYTES), (LEDGER_FILE, MOST_LEDGER_BYTES)):
            self._store.download(name, self._folder.path / name, most)

    def _list(self, kind: BlobKind) -> None:
        for path, size in self._store.sizes(kind):
            name = path.removeprefix(f"{kind}/")
            if is_name(name):
                self._note(short(kind, bytes.fromhex(name)), size)

    def _note(self, found: bytes, size: int) -> None:
        """Remember a size: all items of one size share its number."""
        self._sizes[found] = self._numbers.setdefault(size, size)

    def _keep(self, item: Item, data: bytes) -> None:
        if item.kind in _SMALL:
            self._folder.put(item, data)
