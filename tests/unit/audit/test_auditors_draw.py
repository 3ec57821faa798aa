"""An auditor's draw of payloads to compute again: no round is safe from it."""

from collections import Counter
from collections.abc import Iterator

from troth_audit.replay.draw import Draw
from troth_coordinator.chain.event_base import Event
from troth_coordinator.chain.event_types_audits import OpeningsPosted
from troth_coordinator.chain.event_types_rounds import RoundClosed, SeedFrozen

NUM_ROUNDS = 400
NUM_MEMBERS = 4
OPEN_EVERY = 40
ASKED = 20
NUM_KEYS = 200


def ledger() -> Iterator[Event]:
    """Rounds of four payloads; in every fortieth, the tiles of one are open."""
    for round_ in range(NUM_ROUNDS):
        yield closed(round_)
        if round_ % OPEN_EVERY == 0:
            yield frozen(round_)
            yield OpeningsPosted(
                run=None, slot=0, body=b"", round=round_, target=0, root=b"r" * 32, stage_end=0
            )


def closed(round_: int) -> RoundClosed:
    everybody = 2**NUM_MEMBERS - 1
    return RoundClosed(
        run=None,
        slot=0,
        body=b"",
        round=round_,
        flags=0,
        members=everybody,
        trainers=everybody,
        committed=everybody,
        attested=everybody,
        included=everybody,
        canonical_root=bytes(32),
        seed_slot=0,
        chain_hash=bytes(32),
    )


def frozen(round_: int) -> SeedFrozen:
    return SeedFrozen(
        run=None,
        slot=0,
        body=b"",
        round=round_,
        seed_slot=0,
        found_slot=0,
        slot_hash=bytes(32),
        seed=b"s" * 32,
        sampled=1,
        unseated=0,
        reward_undone=0,
        price_base=0,
        price_new=0,
    )


def test_payloads_without_open_tiles_are_drawn_from_early_and_late_rounds_alike():
    """Fewer tiles are open than asked for: the rest comes from all rounds, whatever the key."""
    events = list(ledger())
    by_quarter: Counter[int] = Counter()
    for key in range(NUM_KEYS):
        draw = Draw(ASKED, f"key {key}", range(NUM_ROUNDS))
        for event in events:
            draw.take(event)
        chosen = draw.chosen()
        assert len(chosen) == ASKED
        others = [at for at, one in chosen.items() if not one.openings_root]
        assert len(others) == ASKED - NUM_ROUNDS // OPEN_EVERY
        by_quarter.update(4 * round_ // NUM_ROUNDS for round_, _ in others)
    expected = by_quarter.total() / 4
    # Five standard deviations of a fair draw; with the oldest first, three quarters got few.
    assert all(abs(by_quarter[at] - expected) < 5 * (0.75 * expected) ** 0.5 for at in range(4))


def test_the_same_key_draws_the_same_and_asking_again_changes_nothing():
    def drawn(key: str) -> list[list[tuple[int, int]]]:
        draw = Draw(ASKED, key, range(NUM_ROUNDS))
        for event in ledger():
            draw.take(event)
        return [list(draw.chosen()), list(draw.chosen())]

    first, again = drawn("a")
    assert first == again
    assert drawn("a") == [first, first]
    assert drawn("b")[0] != first
