"""`troth checkpoint verify`: weights in hand against the root that the chain names.

Owns: what a path may be, whose words about its origin count, and the first tensor that differs.
Never: takes a root from a file; the chain's decides. Imports no torch.
Next: `checkpoint.py` for the chain's side; `troth_attestation/pieces.py` for the root.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from solders.pubkey import Pubkey

from troth_attestation.committed import CommittedState
from troth_attestation.pieces import PieceList, pieces_of
from troth_cli.errors import DifferentWeightsError, InputError, OtherRunError
from troth_cli.workflows.checkpoint import check_config, named
from troth_client.checkpoint.exporting import Origin, config_in
from troth_client.checkpoint.folder import MANIFEST_FILE, CheckpointFolder, Weights
from troth_client.checkpoint.weights_file import WeightsFile
from troth_client.model.export import WEIGHTS_FILE
from troth_client.model.shapes import trainable_shapes
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.rules.config import RunConfig

NAMING_SECONDS: Final = 5.0
"""How long members are asked for the piece list, when a difference is to be named."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The origin of weights as the user or the files name it; None where nobody does."""

    program: str | None
    run: str | None
    round: int | None
    config: RunConfig | None


@dataclass(frozen=True, slots=True)
class InHand:
    """Weights on disk: their source, and what it claims. `folder` is a checkpoint's."""

    path: Path
    claim: Claim
    source: CheckpointFolder | WeightsFile

    @property
    def folder(self) -> CheckpointFolder | None:
        """The checkpoint folder, None for a file."""
        return self.source if isinstance(self.source, CheckpointFolder) else None

    def weights(self, config: RunConfig) -> Weights:
        """Return the weights of this config. Raises CheckpointFileError."""
        if not isinstance(self.source, CheckpointFolder):
            return self.source.weights(config.model)
        if self.source.manifest.config.model != config.model:
            raise OtherRunError(
                "the model of this run's config",
                "another one in the manifest",
                "Leave --config out, or name the config of this run.",
                str(self.path),
            )
        return self.source.weights()


@dataclass(frozen=True, slots=True)
class Verified:
    """Weights whose root is the chain's."""

    program: Pubkey
    state: CommittedState
    config: RunConfig
    weights: Weights

    @property
    def origin(self) -> Origin:
        """Where they come from."""
        state = self.state
        return Origin(
            program=str(self.program),
            run=str(Pubkey(state.run)),
            round=state.round,
            cursor=state.state.cursor,
            root=state.root.hex(),
            config=self.config,
        )


def open_weights(path: Path, override: Claim) -> InHand:
    """Open a checkpoint folder, an export folder or a safetensors file; reads no tensor yet.

    A value of `override` counts more than that of the files. Raises CheckpointFileError.
    """
    if not path.exists():
        raise InputError(
            "a checkpoint, an export or a safetensors file",
            "no such file or folder",
            "Check the path; troth checkpoint fetch RUN --out DIR gets the newest weights.",
            str(path),
        )
    if path.is_dir() and (path / MANIFEST_FILE).exists():
        folder = CheckpointFolder.open(path)
        manifest = folder.manifest
        claim = Claim(manifest.program, manifest.run, manifest.round, manifest.config)
        return InHand(path, _merged(override, claim), folder)
    file = path
    if path.is_dir():
        file = path / WEIGHTS_FILE
        if not file.exists():
            raise InputError(
                f"a folder with {MANIFEST_FILE} or {WEIGHTS_FILE}, or a safetensors file",
                "a folder without",
                "Name the checkpoint, the export or the file.",
                str(path),
            )
        if file.is_symlink():
            raise InputError(
                f"{WEIGHTS_FILE} in the folder",
                "a link to another place",
                "Name the file that it leads to.",
                str(file),
            )
    found = WeightsFile.open(file)
    return InHand(path, _merged(override, _claim_of(found, override)), found)


async def verify(client: CoordinatorClient, held: InHand) -> Verified:
    """Compare weights with the root on chain.

    Raises InputError if their origin is not known, CheckpointMissingError, OtherRunError,
    CheckpointFileError, and DifferentWeightsError with the first tensor that differs.
    """
    run, round_, config = _complete(held)
    _check_program(client, held)
    view = await client.read_run(run)
    check_config(view, config)
    wanted = await named(client, view, round_)
    weights = held.weights(config)
    pieces = pieces_of(weights, wanted.state)
    if pieces.root != wanted.root:
        raise _different(held, wanted, pieces, await _reference(client, held, wanted, config))
    return Verified(client.program_id, wanted, config, weights)


async def _reference(
    client: CoordinatorClient, held: InHand, wanted: CommittedState, config: RunConfig
) -> PieceList | None:
    """Return the pieces under the root on chain: the folder's own, or those of any member."""
    folder = held.folder
    if folder is not None and folder.pieces.root == wanted.root:
        return folder.pieces
    from troth_cli.workflows.checkpoint_fetch import fetch_piece_list
    from troth_cli.workflows.members import Members
    from troth_client.checkpoint.errors import CheckpointGoneError

    members = Members(client, Pubkey(wanted.run), NAMING_SECONDS)
    members.ask_also(config.network.relays)
    try:
        return await fetch_piece_list(members, wanted, trainable_shapes(config.model))
    except CheckpointGoneError:
        return None


def _different(
    held: InHand, wanted: CommittedState, found: PieceList, reference: PieceList | None
) -> DifferentWeightsError:
    expected = f"the state root {wanted.root.hex()} of round {wanted.round}, which is on chain"
    if reference is None:
        what = "nobody serves the list of its pieces, so it is not known which tensor differs"
        step = "Do not use these weights. Start verify again while members of the run are there."
        return DifferentWeightsError(expected, f"{found.root.hex()}; {what}", step, str(held.path))
    both = zip(found.tensors, reference.tensors, strict=True)
    names = [one.name for one, other in both if one.hashes != other.hashes]
    what = f"{found.root.hex()}; {len(names)} of {len(found.tensors)} tensors differ"
    return DifferentWeightsError(
        expected,
        f"{what}, the first one is {names[0]}",
        "Do not use these weights. Fetch them again with: troth checkpoint fetch.",
        str(held.path),
        names[0],
    )


def _complete(held: InHand) -> tuple[Pubkey, int, RunConfig]:
    """Return run, round and config; InputError for what is missing, with the option to add."""
    claim = held.claim
    if claim.config is None:
        raise _unknown(held, "the config of the run", "--config FILE")
    if claim.run is None:
        raise _unknown(held, "the address of the run", "--run RUN")
    if claim.round is None:
        raise _unknown(held, "the round that trains on these weights", "--round N")
    try:
        return Pubkey.from_string(claim.run), claim.round, claim.config
    except ValueError as error:
        raise InputError(
            "the address of a run", repr(claim.run)[:60], "Add --run RUN.", str(held.path)
        ) from error


def _unknown(held: InHand, what: str, option: str) -> InputError:
    return InputError(what, "neither in the files nor given", f"Add {option}.", str(held.path))


def _check_program(client: CoordinatorClient, held: InHand) -> None:
    program = held.claim.program
    if program is not None and program != str(client.program_id):
        raise OtherRunError(
            f"weights of a run of the program {client.program_id}",
            f"those of a run of {program}",
            "Use the version of troth that belongs to that program.",
            str(held.path),
        )


def _claim_of(file: WeightsFile, override: Claim) -> Claim:
    facts = file.facts
    text = facts.get("round", "")
    is_number = text.isascii() and text.isdecimal() and len(text) < len(str(2**64))
    config = None if override.config is not None else config_in(facts, file.path)
    round_ = int(text) if is_number else None
    return Claim(facts.get("program"), facts.get("run"), round_, config)


def _merged(override: Claim, claim: Claim) -> Claim:
    return Claim(
        override.program or claim.program,
        override.run or claim.run,
        claim.round if override.round is None else override.round,
        override.config or claim.config,
    )
