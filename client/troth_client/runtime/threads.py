"""How many threads a participant computes with, in every thread of its event loop's pool.

Owns: that number, for PyTorch and NumPy. Never: computes, or knows for what.
Next: `troth_client/audit/recompute.py`, where a juror computes with one thread for a while.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import torch
from threadpoolctl import threadpool_limits


def compute_with(number: int | None) -> None:
    """Let this thread, and each in the pool of the running event loop, compute with so many.

    None stands for the number that PyTorch has. PyTorch gives a thread that is new to it the number
    that was set last, wherever that was, and the thread keeps it. So each gets its own as it
    starts: it may start while a juror computes with one thread.
    """
    if number is not None:
        torch.set_num_threads(number)
        # NumPy's BLAS has threads of its own; they spin while others need the cores.
        threadpool_limits(number)
    pool = ThreadPoolExecutor(
        thread_name_prefix="work",
        initializer=torch.set_num_threads,
        initargs=(torch.get_num_threads(),),
    )
    asyncio.get_running_loop().set_default_executor(pool)
