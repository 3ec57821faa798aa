"""The checks of `troth join` that need neither a device nor PyTorch, before a stake moves.

Owns: program, config, data, balance, a free place, the weights, the time that is left.
Never: sends a transaction: a place is tried by simulation.
Next: `machine_checks.py` for the device; `return_checks.py` for a member; `join.py`.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

from solders.keypair import Keypair

from troth_cli.errors import FundsError, InputError, TooLateError
from troth_cli.view.amounts import sol
from troth_cli.view.output import Report
from troth_cli.workflows.checks import (
    NO_KIND,
    CheckResult,
    Level,
    Registry,
    kind_of,
    refusal,
    untested,
)
from troth_cli.workflows.create import unused_tokens
from troth_cli.workflows.join_cost import join_lamports
from troth_cli.workflows.join_request import JoinRequest
from troth_cli.workflows.probes import WeightsProbe
from troth_cli.workflows.prospects import Tempo
from troth_client.compression.limits import tile_bits
from troth_client.data.errors import ShardError
from troth_client.data.fit import load_fitting
from troth_client.data.shards import TokenData
from troth_client.errors import ClientError
from troth_client.model.shapes import trainable_shapes
from troth_client.participant.errors import ConfigMismatchError
from troth_client.run_files.order import needed_shards
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.errors import InsufficientFundsError, ProgramRefusedError
from troth_coordinator.chain.operations import JoinOffer, Owner
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import ParticipantIndex
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import NetworkView, Role, RunView

PLACEHOLDER: Final = "http://0.0.0.0:65535"
"""The endpoint of a simulated join where the user names none: the real one is known later."""
NAMED_SHARDS: Final = 3
_POOR: Final = "the balance does not pay for a try; see balance"
_TILE_VALUES: Final = 4096


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A newcomer, the run that it wants to join, and the measurements on the way.

    `stake` is in lamports; `weights` is the error where nobody had them. `index` is its place where
    it has one. `is_asked`: somebody agrees to a deposit, in advance or at a terminal.
    """

    request: JoinRequest
    role: Role
    session: Keypair
    owner: Owner
    view: NetworkView
    stake: int
    weights: WeightsProbe | ClientError
    tempo: Tempo
    report: Report
    index: ParticipantIndex | None = None
    is_asked: bool = True

    @property
    def client(self) -> CoordinatorClient:
        """The connection to the chain."""
        return self.owner.client


async def check_program(newcomer: Newcomer) -> CheckResult:
    """Check that the program of our protocol is there."""
    await newcomer.client.check_program()
    return CheckResult(Level.OK, f"{newcomer.client.program_id}")


async def check_config(newcomer: Newcomer) -> CheckResult:
    """Compare config and data manifest with the hashes that the run holds."""
    run, config = newcomer.view.run, newcomer.request.settings.config
    for what, wanted, found in (
        ("config", run.config_hash, config.config_hash()),
        ("data manifest", run.manifest_hash, config.manifest_digest()),
    ):
        if wanted != found:
            return CheckResult(
                Level.REFUSED,
                f"{what} hash {found.hex()}",
                f"{wanted.hex()}, which the run has on chain",
                "Use the config file and the data set that the run's creator published.",
                kind=kind_of(ConfigMismatchError),
            )
    return CheckResult(Level.OK, f"config hash {run.config_hash.hex()[:16]}")


async def check_data(newcomer: Newcomer) -> CheckResult:
    """Hash the training shards that are needed; name those that are missing or differ."""
    return data_result(newcomer.request, newcomer.view.run, newcomer.report)


def data_result(request: JoinRequest, run: RunView, report: Report) -> CheckResult:
    """Hash the training shards that the run may still need; nobody fetches the others.

    Raises ManifestError, also for data that the run's model cannot take.
    """
    folder, config = request.settings.data, request.settings.config
    manifest = load_fitting(folder, config)
    needed = needed_shards(manifest, run, config)
    with TokenData(folder, manifest) as data:
        faults = data.faults(lambda done, total: report(done, total, "shards"), needed)
    total = len(needed)
    if faults:
        return _bad_shards(faults, total)
    all_shards = len(manifest.train)
    shards = f"{all_shards} shards"
    if total < all_shards:
        shards += f", of which {total} are still needed and here"
    found = f"{manifest.num_sequences} sequences in {shards}"
    unused = unused_tokens(config, manifest)
    return CheckResult(
        Level.WARNING if unused else Level.OK,
        f"{found}; {unused}" if unused else found,
        advice="The run's creator chose it; nothing is wrong with this machine." if unused else "",
        values={"shards": total, "missing": 0},
    )


def _bad_shards(faults: list[ShardError], total: int) -> CheckResult:
    names = [error.path.name for error in faults]
    rest = f" and {len(names) - NAMED_SHARDS} more" if len(names) > NAMED_SHARDS else ""
    return CheckResult(
        Level.REFUSED,
        f"{len(names)} of {total} shards: {', '.join(names[:NAMED_SHARDS])}{rest}"
        f" ({faults[0].found})",
        "every shard that is needed, as the manifest has it",
        faults[0].next_step,
        kind=kind_of(faults[0]),
        values={"shards": total, "missing": len(names)},
    )


async def check_balance(newcomer: Newcomer) -> CheckResult:
    """Compare the owner's balance with stake, session funding, rent and fees."""
    session, owner = newcomer.request.settings.session_lamports, newcomer.owner.key.pubkey()
    needed = join_lamports(newcomer.stake, session)
    balance = await newcomer.client.balance(owner)
    if balance < needed:
        raise FundsError(
            f"{sol(needed)}: the stake of {sol(newcomer.stake)}, the session key's"
            f" {sol(session)}, rent and fees",
            sol(balance),
            f"Send SOL to it (on a local network: troth localnet airdrop {owner} 1).",
            f"account {owner}",
        )
    return CheckResult(
        Level.OK, sol(balance), sol(needed), values={"lamports": balance, "needed": needed}
    )


async def check_place(newcomer: Newcomer) -> CheckResult:
    """Simulate the deposit, so that the program itself names every reason against it."""
    settings, owner = newcomer.request.settings, newcomer.owner
    params = newcomer.view.run.params
    try:
        index = await owner.foretell_join(
            JoinOffer(
                newcomer.session.pubkey(),
                int(newcomer.role),
                settings.endpoint or PLACEHOLDER,
                settings.session_lamports,
                newcomer.stake - params.min_stake_lamports,
            ),
        )
    except InsufficientFundsError:
        return untested(_POOR)
    except ProgramRefusedError as error:
        if error.name == "InsufficientFunds":
            return untested(_POOR)
        raise
    taken = newcomer.view.run.num_participants
    return CheckResult(Level.OK, f"place {index} of {params.capacity}", values={"taken": taken})


async def check_weights(newcomer: Newcomer) -> CheckResult:
    """Say whether members serve the newest checkpoint, and how fast one piece came."""
    found = newcomer.weights
    if not isinstance(found, WeightsProbe):
        return refusal(found, can_go_on=True)
    if not found.num_bytes:
        return CheckResult(Level.OK, "those of round 0, which this machine has")
    values = {
        "round": found.round,
        "bytes": found.num_bytes,
        "bytes_per_second": found.bytes_per_second,
    }
    text = f"round {found.round}, {found.num_bytes / 1e6:.1f} MB"
    if not found.bytes_per_second:
        return CheckResult(
            Level.WARNING,
            f"{text}: its list came, a piece did not",
            "",
            "Try again later.",
            values=values,
        )
    return CheckResult(
        Level.OK, f"{text}, at {found.bytes_per_second / 1e6:.2f} MB/s", values=values
    )


async def check_time(newcomer: Newcomer) -> CheckResult:
    """Compare the rounds in which joining is possible with those that fetch and replay take."""
    run = newcomer.view.run
    left = run.params.max_rounds - run.round
    to_join = run.params.join_until_round - run.round + 1
    if run.phase == Phase.FINISHED or to_join <= 0:
        return untested("the run takes nobody any more; see place")
    seconds = arrival_seconds(newcomer)
    if seconds is None:
        return untested("nobody knows how long the weights take; see weights")
    rounds = ceil(seconds / newcomer.tempo.round_seconds)
    values = {
        "rounds_left": left,
        "rounds_to_join": to_join,
        "round_seconds": newcomer.tempo.round_seconds,
        "arrival_seconds": seconds,
    }
    found = f"{left} rounds of {newcomer.tempo.round_seconds:.3g} s left, joining ends in {to_join}"
    needed = f"{rounds} for the weights and the replay" if rounds else ""
    level = Level.OK
    if 2 * rounds >= to_join:
        level = Level.REFUSED if rounds >= to_join else Level.WARNING
    advice = "Nothing is deposited before the weights are here; it may be too late then."
    return CheckResult(
        level,
        found,
        needed,
        "" if level is Level.OK else advice,
        kind=kind_of(TooLateError) if level is Level.REFUSED else NO_KIND,
        can_go_on=True,
        values=values,
    )


def arrival_seconds(newcomer: Newcomer) -> float | None:
    """Return how long fetching and replaying may take; None if nobody can tell."""
    found, run = newcomer.weights, newcomer.view.run
    if not isinstance(found, WeightsProbe):
        return None
    if not found.num_bytes:
        # Nothing to fetch but the payloads since genesis, whose speed nobody has measured.
        return 0.0
    if not found.bytes_per_second:
        return None
    num_trainers = max(1, run.num_participants)
    num_bytes = payload_bytes(newcomer.request.settings.config)
    payloads = (run.round - found.round) * num_trainers * num_bytes
    return (found.num_bytes + payloads) / found.bytes_per_second


def payload_bytes(config: RunConfig) -> int:
    """Return about how many bytes a payload has, from the number of weights."""
    sizes = (_size(shape) for shape in trainable_shapes(config.model).values())
    num_tiles = sum(-(-size // _TILE_VALUES) for size in sizes)
    return num_tiles * tile_bits(config.demo.k) // 8


def checked_stake(given: int | None, least: int) -> int:
    """Return the stake to deposit; InputError if it is less than the run's least."""
    stake = least if given is None else given
    if stake < least:
        raise InputError(
            f"at least {sol(least)}, the stake to join this run",
            sol(stake),
            "Name more, or leave out the option for exactly that much.",
            "--stake-sol",
        )
    return stake


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for side in shape:
        size *= side
    return size


DATA: Final = "data"
"""The check that comes last where the data has to be fetched."""
CHECKS: Final[Registry[Newcomer]] = (
    ("program", check_program),
    ("config", check_config),
    (DATA, check_data),
    ("balance", check_balance),
    ("place", check_place),
    ("weights", check_weights),
    ("time", check_time),
)
