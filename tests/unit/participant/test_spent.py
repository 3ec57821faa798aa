"""The cap of an epoch counts over restarts, and no file of it stops a participant."""

import pytest

from troth_client.participant.spent import SPENT_FILE, keep_spent
from troth_coordinator.chain.priority import EpochLamports


def started(folder, epoch):
    found = EpochLamports(cap=10_000)
    found.begin(epoch, 0.0, 60.0)
    keep_spent(folder, found)
    return found


def test_a_restart_in_the_same_epoch_goes_on_counting(tmp_path):
    first = started(tmp_path, 3)
    first.hold(4_000)
    first.settle(4_000, 4_000)
    first.settle(0, 1_000)
    assert started(tmp_path, 3).left == 5_000
    assert started(tmp_path, 4).left == 10_000


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"epoch": 3, "spent": -9}', '{"epoch": null}'])
def test_a_damaged_file_counts_as_none(tmp_path, text):
    (tmp_path / SPENT_FILE).write_text(text)
    assert started(tmp_path, 3).left == 10_000


def test_a_folder_that_takes_no_file_stops_nobody(tmp_path):
    epoch = started(tmp_path / "gone", 3)
    epoch.settle(0, 1_000)
    assert epoch.left == 9_000
