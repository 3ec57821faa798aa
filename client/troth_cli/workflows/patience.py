"""The patience of a member that comes back: RPC nodes that are away are asked again.

A machine may start its processes before its network. A member that ended then would miss its
audits.
Owns: who waits, how long between two tries, what is printed. Never: asks anything itself.
Next: `join.py`, whose questions wait so; a running participant waits by itself.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from troth_cli.view.output import Output
from troth_cli.workflows.join_request import JoinRequest
from troth_cli.workflows.return_checks import was_here
from troth_coordinator.chain.errors import RpcUnreachableError

PAUSE_SECONDS: Final = 5.0
"""Between two tries."""

Answer = TypeVar("Answer")


def patiently(request: JoinRequest, output: Output, ask: Callable[[], Answer]) -> Answer:
    """Return the answer of the RPC nodes, however long they are away; a signal ends the process.

    Raises RpcUnreachableError for a newcomer and for one that only checks.
    """
    said = ""
    while True:
        try:
            return ask()
        except RpcUnreachableError as error:
            if request.only_checks or not was_here(request):
                raise
            if str(error) != said:
                said = str(error)
                output.note(f"{said}. A member waits: asked again every {PAUSE_SECONDS:g} s")
        time.sleep(PAUSE_SECONDS)
