"""Send one instruction for an audit and say what became of it.

Owns: that a refusal is an event and not an end: somebody else was faster, or a window has closed.
Never: decides what to send.
"""

from solders.instruction import Instruction

from troth_client.peer import Peer
from troth_coordinator.chain.errors import ProgramRefusedError


async def send(peer: Peer, step: Instruction, event: str, round_: int, target: int) -> str | None:
    """Send `step`, signed by the session; emit `event`, or `<event>_refused` with the error's name.

    Returns that name, None if it landed.
    """
    about = {"round": round_, "target": target}
    try:
        sent = await peer.chain.send([step], [peer.identity.session])
    except ProgramRefusedError as error:
        peer.events.emit(f"{event}_refused", **about, name=error.name)
        return error.name
    peer.events.emit(event, **about, fee=sent.fee_lamports)
    return None
