import pytest

from troth_localnet.blocks import BlockLedger, skip_every, skip_none


def ledger(skip=skip_none, seed=b"", num_kept=1_000) -> BlockLedger:
    return BlockLedger(seed, lambda slot: 1_000 + slot, skip, num_kept)


def test_the_newest_slot_hash_is_the_parents():
    blocks = ledger()
    blocks.advance(9)
    assert blocks.open.slot == 10
    assert [slot for slot, _ in blocks.slot_hashes()] == list(range(9, -1, -1))


def test_slot_hashes_stop_at_512_and_drop_the_oldest():
    blocks = ledger()
    blocks.advance(600)
    slots = [slot for slot, _ in blocks.slot_hashes()]
    assert len(slots) == 512
    assert slots[0] == blocks.open.slot - 1
    assert slots == sorted(slots, reverse=True)


def test_a_slot_keeps_its_hash_for_good():
    blocks = ledger()
    blocks.advance(5)
    early = dict(blocks.slot_hashes())
    blocks.advance(100)
    late = dict(blocks.slot_hashes())
    assert early.items() <= late.items()


def test_skipped_slots_have_no_hash_no_block_and_no_height():
    blocks = ledger(skip_every(4))
    blocks.advance(20)
    slots = [slot for slot, _ in blocks.slot_hashes()]
    assert all(slot % 4 != 3 for slot in slots)
    assert blocks.block(7) is None
    assert blocks.open.slot == 21
    assert blocks.open.height == 21 - 5


def test_advancing_onto_a_skipped_slot_opens_the_next_one():
    blocks = ledger(lambda slot: slot in {5, 6})
    blocks.advance(4)
    assert blocks.open.slot == 7
    assert blocks.open.parent == 4
    assert blocks.slot_hashes()[0][0] == 4


def test_skip_leaves_a_gap_of_exactly_that_many_slots():
    blocks = ledger()
    blocks.advance(1)
    blocks.skip(3)
    assert blocks.open.slot == 6
    assert blocks.open.parent == 2
    assert blocks.open.height == 3


def test_a_blockhash_lasts_150_blocks_whatever_the_slots():
    blocks = ledger(skip_every(2))
    first, height = blocks.open.blockhash, blocks.open.height
    while blocks.open.height < height + 150:
        blocks.advance(1)
    assert blocks.last_valid_height(first) == blocks.open.height
    blocks.advance(1)
    assert blocks.last_valid_height(first) is None


def test_many_slots_at_once_equal_one_at_a_time():
    at_once, one_by_one = ledger(skip_every(7)), ledger(skip_every(7))
    at_once.advance(400)
    while one_by_one.open.slot < at_once.open.slot:
        one_by_one.advance(1)
    assert at_once.slot_hashes() == one_by_one.slot_hashes()
    assert at_once.open == one_by_one.open


def test_the_seed_makes_hashes_differ_and_nothing_else():
    same, other = ledger(seed=b"a"), ledger(seed=b"b")
    assert ledger(seed=b"a").open == same.open
    assert other.genesis_hash != same.genesis_hash
    assert other.open.blockhash != same.open.blockhash


def test_only_the_newest_blocks_are_kept():
    blocks = ledger(num_kept=600)
    blocks.advance(2_000)
    assert blocks.first_kept_slot == 2_001 - 599
    assert blocks.block(blocks.first_kept_slot - 1) is None


@pytest.mark.parametrize("call", ["advance", "skip"])
@pytest.mark.parametrize("num_slots", [0, -1])
def test_time_does_not_stand_or_run_backwards(call, num_slots):
    with pytest.raises(ValueError, match="at least 1 slot"):
        getattr(ledger(), call)(num_slots)


def test_a_rule_that_skips_everything_is_refused():
    with pytest.raises(ValueError, match="at least 2"):
        skip_every(1)
    with pytest.raises(ValueError, match="leaves no block"):
        ledger(lambda slot: slot > 3).advance(5)
