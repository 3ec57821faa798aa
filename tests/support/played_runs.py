"""Long runs on the real program, whose payloads nobody computed: for auditors, who cannot tell.

Owns: headers, payloads of random signs, and weights that follow from them, in an archive's layout.
Never: a gradient. Sampling is off, so nobody looks for one.
Next: program/rounds.py, which drives the program.
"""

import base64
import json
from pathlib import Path

import numpy as np
import torch
from solders.instruction import Instruction

from support.program.rounds import RoundDriver, key
from troth_attestation import header as headers
from troth_attestation.header import Header
from troth_attestation.possession import possession
from troth_attestation.signs import Signs
from troth_attestation.state import data_root, state_root, zero_residual_root
from troth_client.compression import codec
from troth_client.compression.apply import update
from troth_client.compression.known_answer import choose_path
from troth_client.compression.tiles import TileLayout
from troth_client.data.manifest import Manifest
from troth_client.model.init import initial_weights
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.ledger.entries import Entry
from troth_coordinator.ledger.file import LedgerFile, LedgerHead
from troth_coordinator.ledger.history import entries_after
from troth_coordinator.rules.assignment import SequenceOrder, next_cursor, rank_start
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.hashing import H, u64
from troth_coordinator.rules.ids import NONE, Digest
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.schedule import constants_of
from troth_localnet.direct import DirectRpc

NUM_TRAINERS = 4


class PlayedRun(RoundDriver):
    """A run whose members commit real headers and payloads of random signs.

    Every byte that an audit needs is written under `folder` as an archive has it. `changes` are
    those of the run's parameters.
    """

    def __init__(
        self, config: RunConfig, manifest: Manifest, rounds: int, folder: Path, **changes: int
    ) -> None:
        self.config, self.folder = config.with_manifest(manifest.hash), folder
        self.order = SequenceOrder(manifest.num_sequences, manifest.hash)
        self.weights: dict[str, torch.Tensor] = {}
        self._roots: dict[int, bytes] = {}
        self._made: dict[tuple[int, int], tuple[Header, bytes]] = {}
        self._cursor = 0
        self._random = np.random.default_rng(rounds)
        self._write("manifest", manifest.hash, manifest.canonical)
        self._write("config", self.config.config_hash(), self.config.canonical_json())
        super().__init__(
            NUM_TRAINERS,
            pool=10**10,
            max_rounds=rounds,
            p_base_ppm=0,
            p_new_ppm=0,
            sequences_per_payload=config.train.sequences_per_payload,
            checkpoint_every=5,
            **changes,
        )

    def play_all(self) -> None:
        """The whole run, to its end."""
        self.start()
        while self.run.phase != Phase.COOLDOWN:
            self._make_payloads()
            self.play()
            self._apply()
        self.cool_down()

    # The steps of the driver, with real bytes.

    def root_of(self, round_: int) -> bytes:
        """The state root of the weights at a round."""
        return self._roots[round_]

    def _create(self, pool: int) -> None:
        run = bytes(self.at.run)
        drawn = initial_weights(run, self.config.model)
        self.weights = {name: torch.from_numpy(value.copy()) for name, value in drawn.items()}
        self.layout = TileLayout.from_shapes({n: tuple(w.shape) for n, w in self.weights.items()})
        self.path = choose_path("cpu")
        self._zero = zero_residual_root(self.layout.num_tiles)
        self._hash(0)
        owner = self.authority.pubkey()
        terms = make.RunTerms(
            self.run_id,
            self.config.config_hash(),
            self.config.manifest_digest(),
            self._roots[0],
            key("council").pubkey(),
            self.params,
        )
        roster = [make.init_roster(self.at, owner) for _ in range(3)]
        self.create([make.create_run(self.at, owner, terms), *roster], self.authority)
        for position in range(self.params.ring):
            self.send(make.init_round(self.at, owner, position), self.authority)
        self.send(make.fund_run(self.at, owner, pool), self.authority)

    def commit_instruction(self, index: int, root: bytes | None = None) -> Instruction:
        """Commit the header of `_make_payloads`; zeros in the root-only step."""
        run = self.run
        header = bytes(32)
        if run.phase != Phase.COOLDOWN:
            header = headers.header_hash(self._made[run.round, index][0])
        vote = self.vote(index, run.round, root or self.root_of(run.round))
        session = self.sessions[index].pubkey()
        return make.commit_payload(self.at, session, index, run.round, header, vote)

    def attest_instruction(self, index: int, bitmap: int | None = None) -> Instruction:
        """Vouch for all payloads, with the bytes that prove it."""
        run, owner = self.run, bytes(self.owners[index].pubkey())
        held = {i: self._made[run.round, i][1] for i in self.trainers()}
        shown = possession(bytes(self.at.run), run.round, owner, held)
        session = self.sessions[index].pubkey()
        return make.attest(self.at, session, index, run.round, self.open.committed, shown)

    def close_instruction(self, root: bytes | None = None) -> Instruction:
        """Close with the true root."""
        return super().close_instruction(root or self.root_of(self.run.round))

    def ready_instruction(self, index: int, root: bytes | None = None) -> Instruction:
        """Post ready with the true root."""
        return super().ready_instruction(index, root or self.run.root)

    # Bytes of a round.

    def _make_payloads(self) -> None:
        round_, trainers = self.run.round, self.trainers()
        for rank, index in enumerate(trainers):
            payload = codec.encode(self._signs())
            header = self._header(round_, index, rank, payload)
            signature = headers.sign(header, bytes(self.sessions[index])[:32])
            self._write("header", headers.header_hash(header), headers.encode(header) + signature)
            self._write("payload", header.payload_root, payload)
            self._made[round_, index] = (header, payload)
        for old in [one for one in self._made if one[0] < round_ - 1]:
            del self._made[old]

    def _signs(self) -> Signs:
        num_tiles, k = self.layout.num_tiles, self.config.demo.k
        step = 4096 // k
        indices = np.arange(k) * step + self._random.integers(0, step, (num_tiles, k))
        negative = self._random.random((num_tiles, k)) < 0.5
        return Signs(np.ones(num_tiles, bool), indices.astype(np.int16), negative)

    def _header(self, round_: int, index: int, rank: int, payload: bytes) -> Header:
        open_, per_payload = self.open, self.config.train.sequences_per_payload
        start = rank_start(open_.cursor, rank, per_payload)
        previous = open_.ballots[index].previous_included
        before = self._zero if previous == NONE else _residual(previous, index)
        return Header(
            genesis_hash=bytes(self.chain.blocks.genesis_hash),
            program_id=bytes(self.at.program),
            run=bytes(self.at.run),
            epoch=open_.epoch,
            round=round_,
            index=index,
            owner=bytes(self.owners[index].pubkey()),
            session=bytes(self.sessions[index].pubkey()),
            config_hash=self.config.config_hash(),
            state_root=self.root_of(round_),
            data_root=data_root(self.order.sequences(start, per_payload)),
            previous_included=previous,
            residual_before=before,
            residual_after=_residual(round_, index),
            payload_root=codec.payload_root(payload),
            payload_bytes=len(payload),
            mean_loss=3_000_000 - 1_000 * round_,
            salt=bytes(32),
        )

    def _apply(self) -> None:
        round_ = self.run.round - 1
        held = [self._made[round_, index][1] for index in range(NUM_TRAINERS)]
        num_tiles, k = self.layout.num_tiles, self.config.demo.k
        payloads = [codec.decode(payload, num_tiles, k) for payload in held]
        constants = constants_of(self.config.schedule, round_)
        update(self.weights, payloads, self.layout, (constants.a, constants.b), self.path)
        per_payload = self.config.train.sequences_per_payload
        self._cursor = next_cursor(self._cursor, NUM_TRAINERS, per_payload)
        self._hash(round_ + 1)

    def _hash(self, round_: int) -> None:
        arrays = {name: value.numpy() for name, value in self.weights.items()}
        root = state_root(arrays, round_, self._cursor, self.config.config_hash())
        self._roots = {round_: root}

    # The archive.

    async def archive(self) -> None:
        """Write ledger and Run account beside the bytes."""
        client = CoordinatorClient(DirectRpc(self.chain))
        genesis = bytes(self.chain.blocks.genesis_hash).hex()
        head = LedgerHead(str(self.at.program), str(self.at.run), genesis)
        with LedgerFile(self.folder / "ledger.jsonl", head) as ledger:
            found: list[Entry] = [one async for one in entries_after(client, self.at.run)]
            ledger.append(found)
        slot, (account,) = await client.rpc.get_accounts([self.at.run])
        assert account is not None
        data = base64.b64encode(account.data).decode()
        words = {"slot": slot, "owner": str(account.owner), "lamports": account.lamports}
        (self.folder / "chain.json").write_text(json.dumps({**words, "data": data}))

    def _write(self, kind: str, key_: bytes, data: bytes) -> None:
        path = self.folder / kind / key_.hex()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _residual(round_: int, index: int) -> Digest:
    """The residual root that a header names; any 32 bytes would do."""
    return H("troth:played", u64(round_), u64(index))
