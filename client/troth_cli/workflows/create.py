"""Creating a run: settings and data bound together, its address, its price, its genesis root.

Owns: the steps of `troth run create` before and after the transactions. Creation can be repeated
after an interruption: the run's id follows from authority, settings and name.
Never: prints.
Next: `troth_coordinator.chain.operations.Authority`, which sends the transactions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.errors import FundsError, InputError, OtherRunError
from troth_cli.view.amounts import sol
from troth_cli.workflows.given_start import read_noted, tokenizer_warnings
from troth_client.checkpoint.folder import Weights
from troth_client.data.fit import misfit
from troth_client.data.manifest import TOKENIZER_FILE, Manifest
from troth_client.data.tokens import kept_tokenizer
from troth_client.model.genesis import genesis_root
from troth_coordinator.chain import rent
from troth_coordinator.chain.addresses import run_address
from troth_coordinator.chain.instructions import RunTerms
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.operations import GROWTH_BYTES, ROUNDS_PER_TRANSACTION, Authority
from troth_coordinator.chain.rpc import made_by_program
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.errors import ContradictionError
from troth_coordinator.rules.hashing import H, b32, var
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.lateness import least_ring, rounds_closed_to_newcomers
from troth_coordinator.rules.settings import RunSettings
from troth_coordinator.rules.view import RunView

if TYPE_CHECKING:
    from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient

FEE_LAMPORTS = 5_000
MOST_LOOKED_AT = 20
"""Transactions that name an address are looked at for those of a run that was closed."""


def check_calibrated(settings: RunSettings, rpc: str, start: Path | None = None) -> None:
    """Refuse bounds of the judge that nobody measured, unless the chain is on this machine.

    It guards against mistakes only: whoever writes a config may claim anything. `start` is the
    folder of given weights. Raises InputError.
    """
    host = urlsplit(rpc).hostname or ""
    is_local = host in {"localhost", "::1"} or host.startswith("127.")
    if not settings.config.judge.calibrated and not is_local:
        given = "" if start is None else f", --set start.weights=given and --start {start}"
        raise InputError(
            "judge.calibrated = true for a run on a public cluster",
            f"false, and an RPC node at {host}",
            f"Run troth calibrate with this config{given}, and add the section that it prints.",
            "--config",
        )


def warnings(settings: RunSettings, manifest: Manifest, start: Path | None = None) -> Iterator[str]:
    """Yield what the creator of a run should know about its parameters and its data.

    `start` is the folder of given weights: they decide the size of the vocabulary.
    """
    params = settings.chain.to_view()
    unused = unused_tokens(settings.config, manifest)
    if start is not None:
        yield from tokenizer_warnings(start, manifest)
        yield from filter(None, [unused])
    elif unused:
        yield f"{unused}: set model.vocab_size to {manifest.vocab_size}, unless you pad on purpose"
    num_closed = rounds_closed_to_newcomers(params)
    if num_closed:
        yield (
            f"nobody can join or return in the last {num_closed} of the {params.checkpoint_every}"
            f" rounds before a checkpoint: set chain.ring to {least_ring(params.checkpoint_every)},"
            f" or chain.checkpoint_every to {max(1, params.ring - least_ring(0))}"
        )


def check_tokenizer(folder: Path, manifest: Manifest) -> None:
    """Raise InputError for a data set without the tokenizer that it names: nobody could join."""
    if manifest.tokenizer.kind != "bytes" and kept_tokenizer(folder, manifest) is None:
        raise InputError(
            f"{TOKENIZER_FILE} with the hash that the data set names",
            "a missing or another file",
            "Put it back, or run `troth data prepare` anew.",
            str(folder),
        )


def unused_tokens(config: RunConfig, manifest: Manifest) -> str:
    """Return in words that the model has tokens which the data never uses; "" if it has none."""
    more = config.model.vocab_size - manifest.vocab_size
    if more <= 0:
        return ""
    return (
        f"the model has {config.model.vocab_size} tokens and the data set {manifest.vocab_size}:"
        f" {more} rows of the embedding are never trained"
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """A run that may not exist yet."""

    authority: Keypair
    settings: RunSettings
    terms: RunTerms
    run: Pubkey

    @property
    def price(self) -> int:
        """The lamports that the creation takes beside the pool; see `price`."""
        return price(self.terms.params.ring)


@dataclass(frozen=True, slots=True)
class Created:
    """A run that exists, and the lamports that its creation took."""

    view: RunView
    transactions: tuple["ConfirmedTransaction", ...]
    is_new: bool


def bind(settings: RunSettings, manifest: Manifest, start: Path | None = None) -> RunSettings:
    """Return the settings bound to a data set; `start` is the folder of given weights.

    Raises ContradictionError if the data does not fit the model, or if the settings name other
    data.
    """
    config = settings.config
    wrong = misfit(config, manifest)
    if wrong is not None:
        way_out = (
            f"set {wrong.key} to {wrong.found}, or prepare the data with these settings (troth data"
            " prepare --config)"
        )
        if start is not None and wrong.key == "model.vocab_size":
            file = start / TOKENIZER_FILE
            way_out = f"prepare the data as the weights were: troth data prepare --tokenizer {file}"
        expected = f"the data set to have {wrong.wanted}, as the settings say"
        raise ContradictionError(wrong.key, expected, wrong.found, way_out)
    return settings.model_copy(update={"config": config.with_manifest(manifest.hash)})


def begin_from(
    settings: RunSettings, folder: Path | None, note: Callable[[str], None]
) -> tuple[RunSettings, Weights | None]:
    """Return the settings of a run that starts from the weights of a folder, and the weights.

    Without a folder both are as they were: nobody gave weights. Raises InputError where the
    settings ask for some, and the errors of `read_start`.
    """
    if folder is None:
        if settings.config.has_given_start:
            raise InputError(
                "the folder of the first weights, for start.weights = given",
                "none",
                "Name it, or remove the key: then the first weights are drawn.",
                "--from",
            )
        return settings, None
    weights = read_noted(settings.config, folder, note)
    config = settings.config.with_given_start()
    return settings.model_copy(update={"config": config}), weights


def plan(
    settings: RunSettings,
    authority: Keypair,
    council: Pubkey,
    name: str,
    program: Pubkey | None = None,
    given: Weights | None = None,
) -> Plan:
    """Return the run that these settings make; hashes the first weights for its root.

    `settings` are bound to their data; `program` is the packaged one unless named. To draw weights
    takes about 0.1 s per million parameters; those that are `given` are taken as they are.
    """
    chain = settings.chain.model_dump_json().encode("ascii")
    owner = b32(bytes(authority.pubkey()), "authority")
    run_id = H(
        "troth:run-id",
        owner,
        b32(bytes(council), "council"),
        settings.config.config_hash(),
        var(chain),
        var(name.encode()),
    )
    run = run_address(authority.pubkey(), run_id, program)
    terms = RunTerms(
        run_id=run_id,
        config_hash=settings.config.config_hash(),
        manifest_hash=settings.config.manifest_digest(),
        genesis_root=ZERO_DIGEST,
        council=council,
        params=settings.chain.to_view(),
    )
    root = genesis_root(bytes(run), settings.config, given)
    return Plan(authority, settings, replace(terms, genesis_root=root), run)


def price(ring: int) -> int:
    """Return the lamports that a new run takes in rent (given back at its end) and fees."""
    accounts = program_layout().accounts
    roster = accounts["Roster"].size
    sizes = [accounts["Run"].size, 0, roster, *[accounts["Round"].size] * ring]
    held = sum(rent.exempt_lamports(size) for size in sizes)
    num_transactions = 2 + -(-roster // GROWTH_BYTES) + -(-ring // ROUNDS_PER_TRANSACTION)
    return held + num_transactions * FEE_LAMPORTS


async def create(client: "CoordinatorClient", planned: Plan, fund_lamports: int) -> Created:
    """Create the run, or complete one whose creation was interrupted, and fund its pool.

    The pool of a run that was funded before is filled up to `fund_lamports`. Raises FundsError,
    OtherRunError if somebody else's run is at the address, or one was there and is closed, and the
    errors of sending.
    """
    _slot, (found,) = await client.rpc.get_accounts([planned.run])
    existing = made_by_program(found)
    if existing is None:
        await _check_unused(client, planned.run)
        await _check_funds(client, planned, planned.price + fund_lamports)
    else:
        view = await client.read_run(planned.run)
        _check_terms(planned, view)
        fund_lamports = max(0, fund_lamports - view.reward_pool)
    authority = Authority.create_at(client, planned.authority, planned.terms)
    sent = await authority.create_run(planned.terms, fund_lamports)
    view = await client.read_run(planned.run)
    _check_terms(planned, view)
    return Created(view, tuple(sent), existing is None)


async def _check_unused(client: "CoordinatorClient", run: Pubkey) -> None:
    """Refuse the address of a run that was closed: its history would be that of two.

    One request where nothing has ever named the address.
    """
    named = await client.rpc.signatures(run)
    for listed in named[:MOST_LOOKED_AT]:
        events = () if listed.has_failed else await client.events_of(listed.signature, run)
        if events:
            raise OtherRunError(
                f"run {run} to have no history",
                f"a run that was closed: {events[-1].name} in slot {events[-1].slot}",
                "Choose another id with --name: the same settings and name give the same id.",
            )


async def _check_funds(client: "CoordinatorClient", planned: Plan, needed: int) -> None:
    authority = planned.authority.pubkey()
    balance = await client.balance(authority)
    if balance < needed:
        raise FundsError(
            f"about {sol(needed)} for rent, fees and the reward pool",
            sol(balance),
            f"Send SOL to it (troth localnet airdrop {authority} 10 on a local network),"
            " or create a smaller ring.",
            f"account {authority}",
        )


def _check_terms(planned: Plan, view: RunView) -> None:
    """Refuse another authority's run at our address: nobody owns an id before its run exists."""
    wanted = planned.terms
    ours = (bytes(planned.authority.pubkey()), wanted.config_hash, wanted.genesis_root)
    if (view.authority, view.config_hash, view.genesis_root) != ours:
        raise OtherRunError(
            f"run {planned.run} to be free or ours",
            f"a run of {Pubkey.from_bytes(view.authority)} with other terms",
            "Choose another id with --name.",
        )
