"""The identity of a folder: a network that is gone, or another life of a run, is told apart."""

from dataclasses import replace

import pytest

from troth_client.storage import Store, StoreIdentity
from troth_client.storage.errors import StoreIdentityError

EARLIER = StoreIdentity(bytes(32), b"o" * 32, b"c" * 32)
IDENTITY = replace(EARLIER, genesis_hash=b"g" * 32, created_slot=7)


def open_and_close(folder, identity):
    Store(folder, identity, pytest.fail).close()


@pytest.mark.parametrize(("field", "other"), [("genesis_hash", b"x" * 32), ("created_slot", 8)])
def test_the_folder_of_another_network_or_life_is_refused_and_named(tmp_path, field, other):
    open_and_close(tmp_path, IDENTITY)
    with pytest.raises(StoreIdentityError, match=field) as caught:
        open_and_close(tmp_path, replace(IDENTITY, **{field: other}))
    assert "Remove or rename this folder" in caught.value.next_step
    open_and_close(tmp_path, IDENTITY)


def test_a_folder_that_names_no_network_is_taken_once(tmp_path):
    open_and_close(tmp_path, EARLIER)
    open_and_close(tmp_path, IDENTITY)
    with pytest.raises(StoreIdentityError, match="genesis_hash"):
        open_and_close(tmp_path, replace(IDENTITY, genesis_hash=b"x" * 32))
