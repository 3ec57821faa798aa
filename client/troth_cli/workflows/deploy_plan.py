"""The plan of a deploy: what would be sent, what it costs, and what speaks against it.

Owns: every check before the first transaction. Never: sends one.
Next: `deploy.py`, which carries a plan out.

    no account at the id  ──>  buffer, writes, deploy            the program's key signs once
    our program there     ──>  buffer, writes, (extend,) upgrade
    the same code there   ──>  (extend)
"""

from dataclasses import dataclass
from typing import Final, Literal

from solders.hash import Hash
from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.errors import DeployError, FundsError
from troth_cli.view.amounts import sol
from troth_cli.workflows.deployed import DeployedProgram, read_deployed
from troth_coordinator.chain import loader
from troth_coordinator.chain.clusters import public_name
from troth_coordinator.chain.errors import ForeignProgramError, MalformedReplyError
from troth_coordinator.chain.program_image import first_difference, is_ours, sbpf_version
from troth_coordinator.chain.rent import SYSVAR, exempt_lamports, lamports_per_byte
from troth_coordinator.chain.rpc import Account, Rpc, made_by_program
from troth_coordinator.chain.transactions import FEE_PER_SIGNATURE_LAMPORTS

MAINNET: Final = "mainnet-beta"
NO_OLD_CODE: Final = Pubkey.from_string("B8JJXCy5amZyWG9r7EnUYLwzXSXTxG7GZ1qZ1qggo83g")
"""The feature of SIMD-0500: nothing older than sBPF v3 is deployed."""
V3: Final = Pubkey.from_string("5cC3foj77CWun58pC51ebHFUWavHWKarWyR5UUik7dnC")
"""The feature of SIMD-0178, 0189 and 0377: sBPF v3 is deployed and runs."""

Kind = Literal["deploy", "upgrade", "same"]
_LAST_SIGNATURES: Final = {"deploy": 2, "upgrade": 1}


@dataclass(frozen=True, slots=True)
class DeployRequest:
    """A deploy as it was asked for. `key` pays and is the authority.

    program_key: needed for a first deploy only. max_code_bytes: room for longer code, 0 for none.
    """

    key: Keypair
    program: Pubkey
    program_key: Keypair | None
    max_code_bytes: int = 0
    is_final: bool = False
    may_be_mainnet: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster as its node describes it: its name, its rent, and which code it takes."""

    name: str
    genesis_hash: bytes
    lamports_per_byte: int
    takes_v3: bool
    takes_older: bool

    @property
    def genesis_text(self) -> str:
        """The genesis hash in base58."""
        return str(Hash.from_bytes(self.genesis_hash))

    def rent(self, num_bytes: int) -> int:
        """Return the lamports that an account of `num_bytes` must hold here."""
        return exempt_lamports(num_bytes, self.lamports_per_byte)

    @property
    def best_version(self) -> str:
        """The version of sBPF to deploy: v0, which has run for longer, wherever it is taken."""
        return "v0" if self.takes_older else "v3"


@dataclass(frozen=True, slots=True)
class DeployPlan:
    """All of a deploy that is known before it. Amounts are lamports.

    missing: the chunks that the buffer does not hold yet. max_code_bytes: room in the program
    afterwards. extension: bytes by which the program must grow first. buffer_lamports: what the
    buffer holds already. is_new: there is no buffer yet. is_stale: it has another length and must
    be closed first. program_rent, data_rent: what the two accounts of the program lack.
    """

    kind: Kind
    cluster: Cluster
    program: Pubkey
    authority: Pubkey
    image: bytes
    buffer: Pubkey
    buffer_lamports: int
    is_new: bool
    is_stale: bool
    missing: tuple[int, ...]
    max_code_bytes: int
    extension: int
    is_final: bool
    buffer_rent: int
    program_rent: int
    data_rent: int
    balance: int

    @property
    def num_signatures(self) -> int:
        """The signatures of all transactions that are left to send."""
        others = (self.extension > 0) + self.is_final
        if self.kind == "same":
            return others
        made = 2 * self.is_stale + self.is_new
        return made + len(self.missing) + _LAST_SIGNATURES[self.kind] + others

    @property
    def fees(self) -> int:
        """Lamports for the signatures of all transactions that are left to send."""
        return self.num_signatures * FEE_PER_SIGNATURE_LAMPORTS

    @property
    def peak_lamports(self) -> int:
        """The lamports that leave the payer, at the moment when most of them are away."""
        if self.kind == "same":
            return self.spent_lamports
        rents = self.buffer_rent, self.data_rent
        held = max(rents) if self.kind == "deploy" else sum(rents)
        return held - self.buffer_lamports + self.program_rent + self.fees

    @property
    def spent_lamports(self) -> int:
        """The lamports that are gone or bound once the deploy is over."""
        freed = 0 if self.kind == "same" else self.buffer_lamports
        return self.program_rent + self.data_rent + self.fees - freed

    @property
    def short_lamports(self) -> int:
        """The lamports that the payer lacks; what it keeps must suffice for its own account."""
        kept = self.cluster.rent(0) if self.fees else 0
        return max(0, self.peak_lamports + kept - self.balance)


async def read_cluster(rpc: Rpc) -> Cluster:
    """Ask a node which cluster it serves; RpcError, also for one that names no price of rent."""
    genesis = await rpc.genesis_hash()
    keys = [Pubkey.from_string(SYSVAR), V3, NO_OLD_CODE]
    _slot, (rent, v3, no_old) = await rpc.get_accounts(keys)
    return Cluster(
        name=public_name(genesis) or "a local cluster",
        genesis_hash=genesis,
        lamports_per_byte=_price(rent),
        takes_v3=loader.is_active(v3),
        takes_older=not loader.is_active(no_old),
    )


async def plan_deploy(
    rpc: Rpc, cluster: Cluster, request: DeployRequest, image: bytes
) -> DeployPlan:
    """Look at the chain and return what a deploy would do; nothing is sent.

    Raises DeployError and ForeignProgramError for what speaks against it, and RpcError. Whether the
    payer has enough is for `check_funds`.
    """
    _check_cluster(cluster, request, sbpf_version(image))
    wanted = max(len(image), request.max_code_bytes)
    if wanted > loader.MAX_CODE_BYTES:
        most = f"room for at most {loader.MAX_CODE_BYTES} bytes"
        raise DeployError(most, f"{wanted}", "Ask for less with --max-len.", "program")
    authority = request.key.pubkey()
    buffer = loader.buffer_address(authority, request.program)
    _slot, accounts = await rpc.get_accounts([authority, request.program, buffer])
    payer, program_account, buffer_account = accounts
    deployed = await _deployed(rpc, request, program_account)
    room = len(deployed.code) if deployed is not None else wanted
    extension = max(wanted - room, loader.MIN_EXTENSION_BYTES) if wanted > room else 0
    kind = _kind(deployed, image)
    held = _buffer_code(buffer_account)
    missing = () if kind == "same" else missing_chunks(held, image)
    return DeployPlan(
        kind=kind,
        cluster=cluster,
        program=request.program,
        authority=authority,
        image=image,
        buffer=buffer,
        buffer_lamports=0 if buffer_account is None else buffer_account.lamports,
        is_new=held is None,
        is_stale=held is not None and len(held) != len(image),
        missing=missing,
        max_code_bytes=room + extension,
        extension=extension,
        is_final=request.is_final,
        buffer_rent=cluster.rent(loader.BUFFER_HEADER_BYTES + len(image)),
        program_rent=_lacking(cluster, program_account) if kind == "deploy" else 0,
        data_rent=_data_rent(cluster, deployed, wanted, extension),
        balance=0 if payer is None else payer.lamports,
    )


def missing_chunks(held: bytes | None, image: bytes) -> tuple[int, ...]:
    """Return the offsets of the chunks that a buffer lacks; a new buffer holds zeros."""
    known = bytes(len(image)) if held is None or len(held) != len(image) else held
    size = loader.CHUNK_BYTES
    return tuple(
        at for at in range(0, len(image), size) if known[at : at + size] != image[at : at + size]
    )


def check_funds(plan: DeployPlan) -> None:
    """Raise FundsError where the payer has too little; nothing has been sent then."""
    if plan.short_lamports:
        needed = plan.peak_lamports + plan.cluster.rent(0)
        raise FundsError(
            f"{sol(needed)}: {sol(plan.peak_lamports)} for the deploy, and rent of its own",
            sol(plan.balance),
            f"Send {sol(plan.short_lamports)} to {plan.authority}, then repeat. Nothing was sent.",
            f"key {plan.authority}",
        )


def _price(sysvar: Account | None) -> int:
    try:
        return lamports_per_byte(b"" if sysvar is None else sysvar.data)
    except (ValueError, OverflowError) as error:
        raise MalformedReplyError("getMultipleAccounts", str(error)) from error


def _check_cluster(cluster: Cluster, request: DeployRequest, version: str) -> None:
    if cluster.name == MAINNET and not request.may_be_mainnet:
        raise DeployError(
            "a cluster where mistakes cost nothing",
            MAINNET,
            "The program has had no outside audit. With --mainnet it is deployed all the same.",
            "cluster",
        )
    if version == "v3" and not cluster.takes_v3:
        found = "a feature gate that is not active there"
        raise DeployError(f"sBPF v3 on {cluster.name}", found, "Take --image v0.", "image")
    if version != "v3" and not cluster.takes_older:
        found = "a feature gate (SIMD-0500) that refuses it"
        raise DeployError(
            f"sBPF {version} on {cluster.name}", found, "Take --image v3 or auto.", "image"
        )


async def _deployed(
    rpc: Rpc, request: DeployRequest, account: Account | None
) -> DeployedProgram | None:
    """Return our program at the id, None where it is free; raises for anything else."""
    address = f"program id {request.program}"
    if made_by_program(account) is None:
        if request.program_key is None:
            raise DeployError(
                "a program to upgrade", "no account there", "Name --program-key instead.", address
            )
        return None
    found = await read_deployed(rpc, request.program)
    if found.authority is None:
        raise DeployError(
            "a program that can be changed",
            "one that has no authority",
            "Deploy at another id: leave out --upgrade, or name another --program-key.",
            address,
        )
    if found.authority != request.key.pubkey():
        raise DeployError(
            f"the authority {found.authority}, who alone may upgrade it",
            f"--key {request.key.pubkey()}",
            "Name the key file of the authority, or deploy at another id.",
            address,
        )
    if not is_ours(found.code):
        raise ForeignProgramError(
            str(request.program), "another program of this key, which an upgrade would end"
        )
    return found


def _buffer_code(account: Account | None) -> bytes | None:
    found = None if account is None else loader.read_buffer(account)
    return None if found is None else found.code


def _kind(deployed: DeployedProgram | None, image: bytes) -> Kind:
    if deployed is None:
        return "deploy"
    return "same" if first_difference(deployed.code, image) is None else "upgrade"


def _lacking(cluster: Cluster, account: Account | None) -> int:
    held = 0 if account is None else account.lamports
    return max(0, cluster.rent(loader.PROGRAM_BYTES) - held)


def _data_rent(
    cluster: Cluster, deployed: DeployedProgram | None, wanted: int, extension: int
) -> int:
    """Return what the account with the code will hold, or lacks for its extension."""
    if deployed is None:
        return cluster.rent(loader.DATA_HEADER_BYTES + wanted)
    if not extension:
        return 0
    needed = cluster.rent(loader.DATA_HEADER_BYTES + len(deployed.code) + extension)
    return max(0, needed - deployed.data_lamports)
