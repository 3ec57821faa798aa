"""`troth program`: the program itself on a cluster: put there, looked at, compared, taken away.

Owns: options, questions and printing. Never: the order of transactions; `../workflows/deploy.py`
has it. Next: `../workflows/deploy_plan.py` for what speaks against a deploy.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Optional

import typer

from troth_cli.options import OnCluster, command
from troth_cli.view.amounts import address, sol
from troth_cli.view.output import Facts, Output

if TYPE_CHECKING:
    from solders.keypair import Keypair
    from solders.pubkey import Pubkey

    from troth_cli.workflows.deploy_plan import Cluster, DeployPlan, DeployRequest
    from troth_coordinator.chain.rpc import Rpc

GROUP = typer.Typer(
    name="program",
    help="Put the program on a cluster, and compare what is there.",
    no_args_is_help=True,
)
PROGRAM_KEY: Final = Path("troth-program.json")
"""The key file of a new program, unless one is named."""
AUTO: Final = "auto"


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(GROUP)


@dataclass(frozen=True, kw_only=True)
class DeployOptions(OnCluster):
    """Options of `troth program deploy`."""

    key: Annotated[
        Path, typer.Option("--key", metavar="FILE", help="Key file that pays and may upgrade.")
    ]
    program_key: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--program-key",
            metavar="FILE",
            help=f"Key file whose address the program gets; else {PROGRAM_KEY} here, made if it is"
            " not there.",
        ),
    ] = None
    upgrade: Annotated[
        str,
        typer.Option(
            "--upgrade",
            metavar="ADDRESS",
            help="Upgrade the program at this address; its key file is not needed.",
        ),
    ] = ""
    image: Annotated[
        str,
        typer.Option(
            "--image",
            metavar="v0|v3|FILE",
            help="Packaged image by its sBPF version, or a file; auto takes v0 unless the cluster"
            " refuses it.",
        ),
    ] = AUTO
    max_len: Annotated[
        int,
        typer.Option("--max-len", metavar="BYTES", min=0, help="Room for longer code later."),
    ] = 0
    final: Annotated[
        bool, typer.Option("--final", help="Nobody can ever change the program afterwards.")
    ] = False
    mainnet: Annotated[
        bool, typer.Option("--mainnet", help="Deploy also on mainnet-beta, with real money.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what it would do and cost; send nothing.")
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask at a terminal.")] = False


@dataclass(frozen=True, kw_only=True)
class ShowOptions(OnCluster):
    """Options of `troth program show`."""

    where: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="A program id, or a buffer of a deploy.")
    ]


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(OnCluster):
    """Options of `troth program verify`."""

    where: Annotated[str, typer.Argument(metavar="ADDRESS", help="The program id.")]
    image: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option(
            "--image", metavar="FILE", help="Compare with this image; else with the packaged ones."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CloseOptions(OnCluster):
    """Options of `troth program close`."""

    where: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="A buffer of a deploy, or a program id.")
    ]
    key: Annotated[Path, typer.Option("--key", metavar="FILE", help="Key file of its authority.")]
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask at a terminal before a program ends.")
    ] = False


@command(GROUP, "deploy", DeployOptions)
def deploy(options: DeployOptions, output: Output) -> None:
    """Put the program on a cluster, or upgrade the one that is there.

    It shows id, authority, cost and cluster, and asks before it sends anything. A deploy that was
    cut off goes on where it stood when the same command is repeated. Its money lies in a buffer by
    then, and `troth program close` gives it back.
    """
    from troth_cli.connection import run_async
    from troth_cli.keyfiles import read_key
    from troth_cli.view.program import plan_facts, plan_values, without_id
    from troth_cli.workflows.deploy import check_loader
    from troth_cli.workflows.deploy_plan import (
        DeployRequest,
        check_funds,
        plan_deploy,
        read_cluster,
    )
    from troth_coordinator.chain.unhurried import UnhurriedRpc

    key = read_key(options.key, output.warn)
    program_key, is_new = _program_key(options, output)
    request = DeployRequest(
        key=key,
        program=address(options.upgrade, "--upgrade") if options.upgrade else program_key.pubkey(),
        program_key=None if options.upgrade else program_key,
        max_code_bytes=options.max_len,
        is_final=options.final,
        may_be_mainnet=options.mainnet,
    )

    async def work() -> None:
        async with UnhurriedRpc.over(options.rpc) as rpc:
            cluster = await read_cluster(rpc)
            image = _image(options.image, cluster, request.program)
            plan = await plan_deploy(rpc, cluster, request, image)
            if options.dry_run:
                values = {**plan_values(plan), "is_done": False}
                shown = without_id(values) if is_new else values
                output.result(shown, plan_facts(plan, has_id=not is_new))
                return
            check_funds(plan)
            output.note("\n".join(plan_facts(plan).lines()))
            _agree(options.yes, _question(plan, options), output)
            await check_loader(rpc, plan, request)
            if is_new:
                _keep(program_key, output)
            await _carry_out(rpc, plan, request, output)

    run_async(work())


@command(GROUP, "show", ShowOptions)
def show(options: ShowOptions, output: Output) -> None:
    """Show a program on chain: who may change it, its code's length and hash, its rent."""
    from troth_cli.connection import run_async
    from troth_cli.view.program import buffer_values, program_facts, program_values
    from troth_cli.workflows.deployed import read_deployed
    from troth_coordinator.chain.loader import read_buffer
    from troth_coordinator.chain.unhurried import UnhurriedRpc

    where = address(options.where, "ADDRESS")

    async def work() -> None:
        async with UnhurriedRpc.over(options.rpc) as rpc:
            _slot, (account,) = await rpc.get_accounts([where])
            buffer = None if account is None else read_buffer(account)
            if account is not None and buffer is not None:
                values = buffer_values(str(where), buffer, account)
                output.result(values, Facts.of(values))
                return
            found = await read_deployed(rpc, where)
        output.result(program_values(found), program_facts(found))

    run_async(work())


@command(GROUP, "verify", VerifyOptions)
def verify(options: VerifyOptions, output: Output) -> None:
    """Compare a program on chain with an image, byte for byte.

    Exit code 0: equal, apart from zeros behind the code. 1: different, with the place. Either way
    it says who could change the program.
    """
    from troth_cli.connection import run_async
    from troth_cli.workflows.deployed import read_deployed
    from troth_cli.workflows.verify_program import compare, comparison_facts, comparison_values
    from troth_coordinator.chain.unhurried import UnhurriedRpc

    where = address(options.where, "ADDRESS")
    named = None if options.image is None else options.image.read_bytes()

    async def work() -> bool:
        async with UnhurriedRpc.over(options.rpc) as rpc:
            found = await read_deployed(rpc, where)
        comparison = compare(found, named, "" if options.image is None else options.image.name)
        output.result(comparison_values(comparison), comparison_facts(comparison))
        return comparison.is_equal

    if not run_async(work()):
        raise typer.Exit(1)


@command(GROUP, "close", CloseOptions)
def close(options: CloseOptions, output: Output) -> None:
    """Give a buffer's money back, or end a program for ever and give its money back.

    The address of a closed program can never be used again, and its own account keeps a little
    rent. Runs of the program end with it: close them first.
    """
    from troth_cli.connection import run_async
    from troth_cli.keyfiles import read_key
    from troth_cli.view.chain import transaction_values
    from troth_cli.workflows.close_program import close_program, look
    from troth_coordinator.chain.unhurried import UnhurriedRpc

    where = address(options.where, "ADDRESS")
    key = read_key(options.key, output.warn)

    async def work() -> None:
        async with UnhurriedRpc.over(options.rpc) as rpc:
            found = await look(rpc, where, key)
            if found.is_program:
                question = f"End program {where} for ever? It returns {sol(found.lamports)}."
                _agree(options.yes, question, output)
            sent = await close_program(rpc, found, key)
        values = {
            "address": str(where),
            "was_program": found.is_program,
            "returned_lamports": found.lamports,
            **transaction_values(sent),
        }
        output.result(values, f"Closed {where}; {sol(found.lamports)} went to {key.pubkey()}.")

    run_async(work())


async def _carry_out(
    rpc: "Rpc", plan: "DeployPlan", request: "DeployRequest", output: Output
) -> None:
    from troth_cli.view.program import plan_values, program_facts, program_values
    from troth_cli.workflows.deploy import carry_out

    if plan.kind != "same":
        output.note(
            f"Buffer {plan.buffer} holds {sol(plan.buffer_rent)} until the end. If this is cut off,"
            f" repeat the command, or: troth program close {plan.buffer} --key FILE"
        )
    with output.progress("writing the buffer", in_bytes=False) as report:
        found = await carry_out(rpc, plan, request, report)
    _slot, (payer,) = await rpc.get_accounts([plan.authority])
    spent = plan.balance - (0 if payer is None else payer.lamports)
    values = {**plan_values(plan), **program_values(found)}
    values |= {"is_done": True, "spent_lamports": spent}
    output.result(values, program_facts(found), f"Spent {sol(spent)}.")


def _program_key(options: DeployOptions, output: Output) -> tuple["Keypair", bool]:
    """Return the key of the program, and whether it is a new one that no file holds yet."""
    from solders.keypair import Keypair

    from troth_cli.keyfiles import read_key

    if options.upgrade and options.program_key is not None:
        raise typer.BadParameter("name --upgrade or --program-key, not both")
    if options.program_key is None and (options.upgrade or not PROGRAM_KEY.exists()):
        return Keypair(), not options.upgrade
    return read_key(options.program_key or PROGRAM_KEY, output.warn), False


def _keep(key: "Keypair", output: Output) -> None:
    from troth_cli.keyfiles import write_key

    write_key(PROGRAM_KEY, key)
    output.note(f"The program's key is in {PROGRAM_KEY}; only a first deploy needs it.")


def _image(choice: str, cluster: "Cluster", program: "Pubkey") -> bytes:
    """Return the image that was chosen, made out to the program id."""
    from troth_coordinator.chain.program_image import IMAGES, made_out, packaged_image

    version = cluster.best_version if choice == AUTO else choice
    if version in IMAGES:
        return packaged_image(version, program)
    return made_out(Path(choice).read_bytes(), program)


def _question(plan: "DeployPlan", options: DeployOptions) -> str:
    final = ", for ever" if options.final else ""
    what = {"deploy": "Deploy", "upgrade": "Upgrade", "same": "Go on with"}[plan.kind]
    return f"{what} {plan.program} on {plan.cluster.name} for {sol(plan.spent_lamports)}{final}?"


def _agree(is_agreed: bool, question: str, output: Output) -> None:
    """Ask at a terminal; typer.Abort for a no, InputError where nobody can be asked."""
    import sys

    from troth_cli.errors import InputError

    if is_agreed:
        return
    if output.is_json or not sys.stdin.isatty():
        raise InputError(
            "a yes", "no terminal to ask at", "Repeat it with --yes. Nothing was sent.", question
        )
    typer.confirm(question, abort=True, err=True)
