"""Carrying out a deploy: buffer, chunks, then one transaction that makes the program.

Owns: the order, and what is said when it stops half way. Nothing is lost then: the buffer has the
same address in each attempt, and only the chunks that it lacks are sent again.
Never: begins before the plan was agreed to. Next: `deploy_chunks.py`.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from solders.instruction import Instruction
from solders.keypair import Keypair

from troth_cli.errors import DeployError, DeployStoppedError
from troth_cli.view.amounts import sol
from troth_cli.view.output import Report
from troth_cli.workflows.deploy_chunks import fill_buffer
from troth_cli.workflows.deploy_plan import DeployPlan, DeployRequest
from troth_cli.workflows.deployed import DeployedProgram, read_deployed
from troth_coordinator.chain import loader
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import ChainError
from troth_coordinator.chain.program_image import first_difference
from troth_coordinator.chain.rpc import Rpc
from troth_coordinator.chain.sender import Sender

NUM_LOOKS: Final = 150
POLL_SECONDS: Final = 0.2
_CANNOT_DEPLOY = "Unsupported instruction"


async def check_loader(rpc: Rpc, plan: DeployPlan, request: DeployRequest) -> None:
    """Raise DeployError where the loader cannot deploy at all: on the embedded chain.

    A deploy without a buffer fails on every chain; there it fails because no deploy is known.
    """
    if plan.kind != "deploy" or request.program_key is None:
        return
    instructions = loader.deploy(plan.authority, plan.program, 1, plan.program_rent)
    try:
        await _sender(rpc).simulate(instructions, [request.key, request.program_key])
    except ChainError as error:
        if _CANNOT_DEPLOY in getattr(error, "logs", ()):
            raise DeployError(
                "a cluster that deploys programs",
                "the embedded chain, whose loader only keeps buffers",
                "Use `troth localnet up --validator`, or devnet. This chain has the program"
                " already: `troth localnet up` puts it there.",
                "cluster",
            ) from error


async def carry_out(
    rpc: Rpc, plan: DeployPlan, request: DeployRequest, report: Report
) -> DeployedProgram:
    """Deploy or upgrade as planned and return what is on chain then, compared with the image.

    Raises DeployStoppedError, which says where the money is and how to go on.
    """
    try:
        await _send_all(rpc, plan, request, report)
        found = await read_deployed(rpc, plan.program)
    except (ChainError, DeployError) as error:
        raise await _stopped(rpc, plan, error) from error
    at = first_difference(found.code, plan.image)
    if at is not None:
        raise DeployStoppedError(
            "the image on chain",
            f"code that differs from offset {at} on",
            "Ask another node with --rpc, then repeat.",
            f"program {plan.program}",
        )
    return found


async def _send_all(rpc: Rpc, plan: DeployPlan, request: DeployRequest, report: Report) -> None:
    key, authority, program = request.key, plan.authority, plan.program
    sender = _sender(rpc)
    if plan.kind != "same":
        if plan.is_stale:
            await sender.send([loader.close_buffer(plan.buffer, authority)], [key])
        await _make_buffer(rpc, sender, plan, key)
        await fill_buffer(rpc, key, plan.buffer, plan.image, report)
    if plan.extension:
        instruction = loader.extend(authority, program, plan.extension)
        await _send_and_pass(rpc, sender, [instruction], [key])
    if plan.kind == "deploy" and request.program_key is not None:
        instructions = loader.deploy(authority, program, plan.max_code_bytes, plan.program_rent)
        await _send_and_pass(rpc, sender, instructions, [key, request.program_key])
    if plan.kind == "upgrade":
        await _send_and_pass(rpc, sender, [loader.upgrade(authority, program)], [key])
    if request.is_final:
        await sender.send([loader.make_final(authority, program)], [key])


async def _make_buffer(rpc: Rpc, sender: Sender, plan: DeployPlan, key: Keypair) -> None:
    """Create the buffer, unless an earlier attempt has."""
    _slot, (account,) = await rpc.get_accounts([plan.buffer])
    if account is not None and loader.read_buffer(account) is not None:
        return
    lacking = plan.buffer_rent - (0 if account is None else account.lamports)
    length = len(plan.image)
    await sender.send(loader.create_buffer(plan.authority, plan.program, length, lacking), [key])


async def _send_and_pass(
    rpc: Rpc, sender: Sender, instructions: Sequence[Instruction], signers: Sequence[Keypair]
) -> None:
    """Send, then wait for a later slot: the loader changes a program once in a slot."""
    sent = await sender.send(instructions, signers)
    for _look in range(NUM_LOOKS):
        if await rpc.get_slot() > sent.slot:
            return
        await asyncio.sleep(POLL_SECONDS)


async def _stopped(
    rpc: Rpc, plan: DeployPlan, error: ChainError | DeployError
) -> DeployStoppedError:
    """Return the error with the place of the money, as far as a node still says it."""
    try:
        _slot, (account,) = await rpc.get_accounts([plan.buffer])
        held = None if account is None else account.lamports
    except ChainError:
        held = plan.buffer_rent
    where = "No buffer holds money." if held is None else f"Buffer {plan.buffer} holds {sol(held)}."
    back = "" if held is None else f", or take it back: {close_command(plan)}"
    return DeployStoppedError(
        "the deploy to finish",
        f"{error.subject}: {error.found}" if error.subject else error.found,
        f"{where} Repeat the same command to go on{back}.",
        f"program {plan.program}",
    )


def close_command(plan: DeployPlan) -> str:
    """Return the command that gives a half-filled buffer's money back."""
    return f"troth program close {plan.buffer} --key FILE"


def _sender(rpc: Rpc) -> Sender:
    return Sender(rpc, program_codec())
