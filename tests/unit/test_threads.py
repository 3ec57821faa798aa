"""A participant's pool computes with its number of threads, whatever a juror does meanwhile."""

import asyncio
import threading

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from troth_client.audit.recompute import num_threads
from troth_client.runtime.threads import compute_with

POOLED = 4


@pytest.fixture(autouse=True)
def _own_numbers():
    with threadpool_limits(), num_threads(torch.get_num_threads()):
        yield


def number_here():
    np.ones((64, 64)) @ np.ones((64, 64))
    return torch.get_num_threads()


async def numbers_of_new_threads():
    """The numbers in threads that start at once, while one computes with one thread."""
    begun, over = threading.Event(), threading.Event()
    together = threading.Barrier(POOLED)

    def judge():
        with num_threads(1):
            begun.set()
            over.wait(60)

    def work():
        together.wait(60)
        return number_here()

    judging = asyncio.create_task(asyncio.to_thread(judge))
    await asyncio.to_thread(begun.wait, 60)
    found = await asyncio.gather(*(asyncio.to_thread(work) for _ in range(POOLED)))
    over.set()
    await judging
    return found


@pytest.mark.parametrize("number", [2, 3])
async def test_threads_that_start_beside_a_juror_have_the_number_of_the_participant(number):
    compute_with(number)
    assert number_here() == number
    assert await numbers_of_new_threads() == [number] * POOLED
    assert {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"} == {
        number
    }


async def test_without_a_number_threads_have_that_of_the_process():
    with num_threads(3):
        compute_with(None)
    assert await numbers_of_new_threads() == [3] * POOLED
