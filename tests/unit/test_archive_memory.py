"""The memory of an archive with a store grows with each item: by how much."""

import os
import tracemalloc

from troth_client.archive import stored
from troth_client.archive.folder import ArchiveFolder
from troth_client.archive.items import Item, name_of
from troth_client.archive.mirror import Mirror
from troth_client.archive.stored import StoredBytes
from troth_client.telemetry.events import EventList
from troth_client.transport.base import BlobKind
from troth_client.transport.store import StoreWire

ITEMS = 20_000
MOST_BYTES = 170
"""A table grows in steps: its share of an item is least just before the next one."""


class Listed:
    """A store with many payloads, and with objects that are none."""

    def __init__(self, url):
        del url

    def sizes(self, kind):
        for number in range(ITEMS if kind is BlobKind.PAYLOAD else 0):
            yield f"{kind}/{os.urandom(32).hex()}", 1_000_000 + number % 2
        yield f"{kind}/other.tmp", 7

    def close(self):
        pass


def bytes_per_item(make):
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        made = make()
        return (tracemalloc.get_traced_memory()[0] - before) / ITEMS, made
    finally:
        tracemalloc.stop()


def test_what_lies_in_a_store(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "RemoteStore", Listed)
    num_bytes, made = bytes_per_item(lambda: StoredBytes("", ArchiveFolder(tmp_path)))
    assert len(made._sizes) == ITEMS
    assert num_bytes < MOST_BYTES


def test_what_is_to_be_copied_to_a_store(tmp_path):
    folder = ArchiveFolder(tmp_path)
    folder.ledger.write_bytes(b"")
    mirror = Mirror("", StoreWire(1.0, signs=True), folder, EventList(), None)

    def filled():
        for number in range(ITEMS):
            mirror.add(Item(BlobKind.PAYLOAD, os.urandom(32), number, 1))

    num_bytes, _ = bytes_per_item(filled)
    assert num_bytes < MOST_BYTES


def test_the_short_form_of_an_item_names_it():
    for kind in BlobKind:
        item = Item(kind, os.urandom(32), 7, 1)
        assert len(item.short) == 33
        assert name_of(item.short).address == item.address
