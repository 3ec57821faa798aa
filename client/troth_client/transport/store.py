"""Object stores as holders: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`.

Owns: the name of an object, `<prefix>/<kind>/<hex>`, and the error for each kind of failure.
Never: believes an object, which may be any bytes of any size, or shows what the library says: that
may hold a signed address. Credentials come from the environment under the names of `obstore`.
Without them, or for a store that a stranger names, nothing is signed, and public objects can still
be read. The library follows redirects of the provider, or of the endpoint in the environment: no
stranger names either.
Next: `exchange.py`, which asks stores like all other holders and checks what they send.
"""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from troth_client.runtime.files import atomic_stream
from troth_client.transport.base import BlobId
from troth_client.transport.blob_cache import BlobCache
from troth_client.transport.errors import (
    HolderChangedError,
    HolderClosedError,
    HolderError,
    HolderLacksError,
    HolderLiedError,
    HolderSilentError,
    HolderTruncatedError,
    HolderUnreachableError,
)
from troth_client.transport.wire import Partial

if TYPE_CHECKING:
    from obstore import GetResult, ObjectMeta, PutMode, PutResult
    from obstore.store import ObjectStore

_CHUNK_BYTES = 64 * 1024
_NEXT = "Asking another holder."
_CONNECT = timedelta(seconds=3)
_LONGEST = timedelta(days=1)  # the limits of `Patience` end a request long before
CREDENTIALS: Final = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"),
    "gs": ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_SERVICE_ACCOUNT_PATH"),
    "az": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_KEY", "AZURE_CLIENT_SECRET"),
}
"""By scheme, the names in the environment of which one must be set to write there."""
ONE_REQUEST_BYTES: Final = 64 * 2**20
"""A longer file takes several requests, which no store makes conditional."""


@dataclass(frozen=True, slots=True)
class Version:
    """An object as it was seen: equal where the store calls its bytes the same."""

    tag: str | None
    number: str | None = field(default=None, compare=False)
    num_bytes: int = field(default=0, compare=False)

    @classmethod
    def of(cls, found: "ObjectMeta | PutResult", num_bytes: int) -> Self:
        """Return the version that a store names."""
        return cls(found["e_tag"], found["version"], num_bytes)

    @property
    def mode(self) -> "PutMode":
        """Return the condition that the object is still this one."""
        return (
            {"e_tag": self.tag}
            if self.number is None
            else {"e_tag": self.tag, "version": self.number}
        )


class StoreWire:
    """Reads and writes object stores. It listens nowhere.

    `signs`: with the credentials in the environment. A store that a stranger named is read without.
    """

    def __init__(self, grace_seconds: float, *, signs: bool) -> None:
        self._grace_seconds = grace_seconds
        self._signs = signs
        self._opened: dict[str, ObjectStore] = {}

    async def start(self, cache: BlobCache) -> str:
        """Nothing to start: a store serves by itself."""
        del cache
        return ""

    async def stop(self) -> None:
        """Nothing to stop: connections end with their requests."""

    async def read(self, holder: str, blob: BlobId, into: Partial) -> None:
        """Append the missing bytes; HolderError names what the store did instead."""
        import obstore  # noqa: PLC0415  only who uses a store waits for it

        have = len(into.data)
        with self._named(holder, HolderLacksError):
            store = self._open(holder)
            async with asyncio.timeout(self._grace_seconds):
                options: Any = {"range": {"offset": have}} if have else {}
                found = await obstore.get_async(store, blob.address, options=options)
        _check_size(holder, found.meta["size"], into)
        if found.range != (have, found.meta["size"]):
            raise HolderLiedError(f"{holder} to send from byte {have}", f"{found.range}", _NEXT)
        async for chunk in self._chunks(holder, found):
            into.append(holder, chunk)

    async def _chunks(self, holder: str, found: "GetResult") -> AsyncIterator[bytes]:
        """Yield the bytes of an object; HolderError where they end early or do not come."""
        chunks = aiter(found.stream(min_chunk_size=_CHUNK_BYTES))
        while True:
            with self._named(holder, HolderLacksError, HolderTruncatedError):
                async with asyncio.timeout(self._grace_seconds):
                    chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield bytes(chunk)

    async def write(self, holder: str, blob: BlobId, data: bytes) -> None:
        """Put an object, unless these bytes are there; other ones are replaced.

        Raises HolderClosedError without credentials that may write.
        """
        self._check_credentials(holder)
        if not await self._holds(holder, blob, data):
            await self.put(holder, blob.address, data)

    async def put(self, holder: str, name: str, data: bytes) -> None:
        """Put an object under any name. Raises as `write`."""
        import obstore  # noqa: PLC0415

        self._check_credentials(holder)
        with self._named(holder, HolderClosedError):
            await obstore.put_async(self._open(holder), name, data, use_multipart=False)

    async def put_file(self, holder: str, name: str, path: Path) -> Version:
        """Put a file of any length under a name, in parts that fit into memory. Raises as `write`.

        It may hold bytes that are appended meanwhile.
        """
        import obstore  # noqa: PLC0415

        self._check_credentials(holder)
        num_bytes = path.stat().st_size
        with self._named(holder, HolderClosedError):
            put = await obstore.put_async(self._open(holder), name, path, max_concurrency=2)
        return Version.of(put, num_bytes)

    async def replace_file(
        self, holder: str, name: str, path: Path, known: Version | None
    ) -> Version:
        """Put a file in the place of the object that we know, None for no object.

        A folder, some stores, and all stores for a long file know no such condition: there we look
        just before. Raises HolderChangedError where another object is there, and as `write`.
        """
        import obstore  # noqa: PLC0415

        self._check_credentials(holder)
        num_bytes = path.stat().st_size
        if num_bytes <= ONE_REQUEST_BYTES:
            mode: PutMode = "create" if known is None else known.mode
            with contextlib.suppress(NotImplementedError), self._named(holder, HolderClosedError):
                put = await obstore.put_async(self._open(holder), name, path, mode=mode)
                return Version.of(put, num_bytes)
        if await self.version(holder, name) != known:
            raise _changed(holder)
        return await self.put_file(holder, name, path)

    async def version(self, holder: str, name: str) -> Version | None:
        """Return which object is there, None for no object. Raises HolderError."""
        import obstore  # noqa: PLC0415

        with contextlib.suppress(HolderLacksError), self._named(holder, HolderClosedError):
            async with asyncio.timeout(self._grace_seconds):
                found = await obstore.head_async(self._open(holder), name)
            return Version.of(found, found["size"])
        return None

    async def get_file(self, holder: str, name: str, path: Path, most_bytes: int) -> Version:
        """Write an object of any name, which may be any bytes, into a new file.

        Raises HolderError, HolderLiedError for one that is longer, DiskFullError.
        """
        import obstore  # noqa: PLC0415

        with self._named(holder, HolderLacksError):
            async with asyncio.timeout(self._grace_seconds):
                found = await obstore.get_async(self._open(holder), name)
        num_bytes = 0
        with atomic_stream(path, durable=False) as out:
            async for chunk in self._chunks(holder, found):
                num_bytes += len(chunk)
                if num_bytes > most_bytes:
                    told = f"more than {most_bytes} bytes"
                    raise HolderLiedError(f"{name} at {holder}", told, _NEXT)
                await asyncio.to_thread(out.write, chunk)
        return Version.of(found.meta, num_bytes)

    async def sizes(self, holder: str, folder: str) -> AsyncIterator[list[tuple[str, int]]]:
        """Yield the names of the objects in a folder of a store, and their sizes, by pages."""
        import obstore  # noqa: PLC0415

        pages = aiter(obstore.list(self._open(holder), prefix=folder))
        while True:
            with self._named(holder, HolderClosedError):
                async with asyncio.timeout(self._grace_seconds):
                    page = await anext(pages, None)
            if page is None:
                return
            yield [(one["path"], one["size"]) for one in page]

    async def remove(self, holder: str, name: str) -> None:
        """Remove an object; harmless when repeated. Raises HolderError."""
        import obstore  # noqa: PLC0415

        self._check_credentials(holder)
        with contextlib.suppress(HolderLacksError), self._named(holder, HolderClosedError):
            await obstore.delete_async(self._open(holder), name)

    def _check_credentials(self, holder: str) -> None:
        if not self._may_write(holder):
            raise HolderClosedError("credentials in the environment", "none", "Pushing elsewhere.")

    async def _holds(self, holder: str, blob: BlobId, data: bytes) -> bool:
        """Return whether a store has these bytes, which are read only where nothing else tells.

        The tag of an object in S3 is the MD5 of its bytes, as a rule. Another tag tells nothing.
        """
        import obstore  # noqa: PLC0415

        found = Partial(len(data))
        with contextlib.suppress(HolderError):
            with self._named(holder, HolderLacksError):
                async with asyncio.timeout(self._grace_seconds):
                    meta = await obstore.head_async(self._open(holder), blob.address)
            _check_size(holder, meta["size"], found)
            tag = hashlib.md5(data, usedforsecurity=False).hexdigest()
            if (meta["e_tag"] or "").strip('"') == tag:
                return True
            await self.read(holder, blob, found)
        return found.data == data

    def _open(self, url: str) -> "ObjectStore":
        if url not in self._opened:
            from obstore.store import from_url  # noqa: PLC0415

            options: dict[str, Any] = {
                "retry_config": {"max_retries": 0},  # another holder is the retry
                "client_options": {
                    "connect_timeout": _CONNECT,
                    "timeout": _LONGEST,
                    # Options take the place of what the library reads from the environment.
                    "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true",
                },
            }
            if url.startswith("file:"):
                options = {"mkdir": True}
            elif not self._may_write(url):
                options["skip_signature"] = True
            self._opened[url] = from_url(url, **options)
        return self._opened[url]

    def _may_write(self, url: str) -> bool:
        """Return whether we have credentials for a store and use them, or it is a folder."""
        scheme = url.partition(":")[0]
        found = scheme == "file" or any(os.environ.get(name) for name in CREDENTIALS[scheme])
        return self._signs and found

    @contextlib.contextmanager
    def _named(
        self, holder: str, denied: type[HolderError], failed: type[HolderError] | None = None
    ) -> Iterator[None]:
        """Translate what the library raises; its own text may hold a secret, so it ends here."""
        from obstore import exceptions  # noqa: PLC0415

        try:
            yield
        except TimeoutError:
            seconds = f"something within {self._grace_seconds:.1f} s"
            raise HolderSilentError(f"{holder} to send {seconds}", "nothing", _NEXT) from None
        except FileNotFoundError:
            raise HolderLacksError(f"{holder} to have it", "no such object", _NEXT) from None
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError):
            # Where nobody may list a bucket, an object that is missing looks like this, too.
            raise denied(f"{holder} to let us", "permission denied", _NEXT) from None
        except (exceptions.PreconditionError, exceptions.AlreadyExistsError):
            raise _changed(holder) from None
        except (exceptions.BaseError, OSError, ValueError) as error:
            kind = failed or HolderUnreachableError
            raise kind(f"{holder} to answer", type(error).__name__, _NEXT) from None


def _changed(holder: str) -> HolderChangedError:
    expected = f"{holder} to hold the object that we know"
    return HolderChangedError(expected, "another one", "Reading it again.")


def _check_size(holder: str, num_bytes: int, into: Partial) -> None:
    """Judge the size of an object before its first byte."""
    if not into.fits(num_bytes - len(into.data)):
        raise HolderLiedError(f"{into.num_bytes} bytes at {holder}", f"{num_bytes}", _NEXT)
