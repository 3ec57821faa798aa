"""A run of 100,000 rounds fits in the book: its newest rounds whole, its beginning in steps."""

from dataclasses import replace
from itertools import pairwise

from troth_audit.rounds import ClosedRound
from troth_cli.observe.round_book import RoundBook
from troth_client.telemetry.losses import RoundLoss

MOST = 256


def closed(round_, included=0b11):
    return ClosedRound(round_, round_ * 10, round_ * 10 + 8, 2, 2, 2, 2, included, False)


def test_a_long_run_keeps_its_newest_rounds_and_its_shape():
    book = RoundBook(MOST)
    for round_ in range(5, 100_000):
        book.add([closed(round_)])
    kept = [one.chain.round for one in book.all()]
    assert len(kept) <= MOST
    assert kept == sorted(kept)
    assert kept[-MOST // 4 :] == list(range(100_000 - MOST // 4, 100_000))
    assert kept[0] == book.first == 5
    assert book.num_dropped == 100_000 - 5 - len(kept)
    steps = [after - before for before, after in pairwise(kept)]
    assert steps == sorted(steps, reverse=True), "the older, the wider"


def test_rounds_that_come_at_once_are_thinned_out_too():
    book = RoundBook(8)
    book.add(map(closed, range(20)))
    kept = [one.chain.round for one in book.all()]
    gone = [round_ for round_ in range(15) if round_ not in kept]
    assert gone
    assert len(book.all()) <= 8


def test_a_payload_that_is_struck_later_takes_the_loss_of_its_round_with_it():
    book = RoundBook(MOST)
    assert book.add([closed(3), None])
    loss = RoundLoss(1, 1, 2)
    assert book.put_loss(closed(3), loss)
    assert not book.put_loss(closed(3), loss), "it is known"
    assert not book.add([closed(3)])
    assert book.get(3).loss == loss
    struck = closed(3, included=0b01)
    assert book.add([struck])
    assert book.get(3).loss is None
    assert not book.put_loss(closed(3), loss), "of other payloads than the round has now"
    assert not book.put_loss(closed(4), loss)
    assert book.put_loss(struck, replace(loss, num_known=1))
