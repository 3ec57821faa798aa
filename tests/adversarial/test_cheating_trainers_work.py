"""Trainers that do not do the work which they sign for.

Each is honest until three of its payloads were included. Then it cheats.
"""

from adversarial.cheats import (
    assert_convicted_of_work,
    assert_honest_untouched,
    play_out,
    stage,
    work_cheat,
)

FIRST_LIE = 3


async def test_a_free_rider_loses_half_and_the_second_time_everything(theatre):
    """It trains honestly until it is trusted, then computes nothing and sends what it has left.

    Its decayed residual still has the shape of an honest payload and half of its signs, so it
    hopes to be paid for nothing. But its implied gradient u - beta M is zero, so every witness
    finds an error of 1. Two rounds of it: half of its stake, then the rest, and it is barred.
    Threat T01.
    """
    run, books = await stage(theatre, work_cheat("free-rider"), rounds=FIRST_LIE + 2)
    await play_out(run)
    first, second = books.convictions()
    assert sorted((first.event.round, second.event.round)) == [FIRST_LIE, FIRST_LIE + 1]
    assert_convicted_of_work(books, first)
    assert_convicted_of_work(books, second, is_repeated=True)
    assert second.after.stake + second.after.unbonding == 0
    await assert_honest_untouched(run, books)
