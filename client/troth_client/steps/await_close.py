"""Await the close: the step between attesting and moving the weights.

Owns: waiting for the close. Never: decides what it includes. Next: `collect.py` for the included
payloads, `replay.py` for roots that disagree, `settle.py`.
"""

from collections.abc import Mapping

from troth_client.network.chain import RunChain
from troth_client.network.submissions import Submissions
from troth_client.state.records import Closure, Held, Payloads
from troth_client.steps.collect import collect
from troth_client.telemetry.spans import timed


@timed("close")
async def await_close(
    chain: RunChain, submissions: Submissions, round_: int, held: Mapping[int, Held]
) -> tuple[Closure, Payloads]:
    """Wait until the round is closed and return what it included, with all payloads decoded."""
    view = await chain.until(lambda view: view.run.round > round_)
    return await collect(chain, submissions, view, round_, held)
