"""Deploys of the program without the command line: plans, and images that are small or damaged.

Owns: an image with our mark in it that no chain would run, for chains that only keep buffers.
Never: a chain. Next: `troth_cli/workflows/deploy.py`.
"""

from solders.keypair import Keypair

from troth_cli.workflows.deploy_plan import DeployPlan, DeployRequest, plan_deploy, read_cluster
from troth_coordinator.chain.rpc import Rpc


def small_image() -> bytes:
    """An ELF header of version 0, then bytes of which no chunk is zero."""
    head = b"\x7fELF" + bytes(60)
    return head + b"InvalidAmount" + bytes(at % 251 + 1 for at in range(5_000))


async def planned(
    rpc: Rpc, key: Keypair, program: Keypair, image: bytes, max_code_bytes: int = 0
) -> tuple[DeployPlan, DeployRequest]:
    """The plan of a first deploy of `image`, and the request behind it."""
    request = DeployRequest(key, program.pubkey(), program, max_code_bytes)
    cluster = await read_cluster(rpc)
    return await plan_deploy(rpc, cluster, request, image), request
