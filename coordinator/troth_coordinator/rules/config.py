"""The hashed configuration of a run: what every participant must agree on to the bit.

Owns: the sections, their ranges and cross-checks, the canonical JSON and the config hash.
Never: holds a float, a path, a key or anything that may differ between machines.
Next: `params.py` for the parameters on chain, `schedule.py` for the learning rate.

Units are in the names: `_nano` is 10^-9, `_micro` is 10^-6.
"""

import json
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from troth_coordinator.rules.base import FrozenModel, follow
from troth_coordinator.rules.errors import ContradictionError, UnboundConfigError
from troth_coordinator.rules.hashing import H, b32, var
from troth_coordinator.rules.ids import Digest

MICRO: Final = 10**6
NANO: Final = 10**9

Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
NonNegative = Annotated[int, Field(ge=0, le=2**31 - 1)]
Layers = Annotated[int, Field(ge=1, le=4_096)]
"""Each has nine tensors, whose names everybody writes out who reads a stranger's config."""
Micro = Annotated[int, Field(ge=0, le=1_000 * MICRO)]
NUM_FAR: Final = 3
"""So many tiles that are far off by themselves are a mismatch; one of them is no ok work."""
LEAST_AGREEMENT_AUDITS: Final = 2_995
"""Without an alarm in so many audits, fewer than one in 1000 is false (upper 95 % bound)."""
APART: Final = (3, 2)
"""Two bounds of one number are at least so far apart, as a fraction."""
PAIRS: Final = (
    ("ok_bound_micro", "mismatch_bound_micro"),
    ("ok_tiles", "mismatch_tiles"),
    ("tile_bound_micro", "tile_mismatch_bound_micro"),
    ("tile_bound_micro", "tile_mismatch_micro"),
    ("tile_mismatch_micro", "tile_forged_micro"),
    ("residual_bound_micro", "residual_mismatch_micro"),
    ("residual_tile_ok_micro", "residual_mismatch_micro"),
)
"""Keys of the judge: work is ok up to the first, and counts as a mismatch beyond the second."""

HubUrl = Annotated[str, Field(max_length=96, pattern=r"^https?://[!-~]+$")]
StoreUrl = Annotated[
    str, Field(max_length=96, pattern=r"^(s3|gs|az)://[a-z0-9][a-z0-9._-]*(/[A-Za-z0-9._/-]*)?$")
]
HexDigest = Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]


class ModelSection(FrozenModel):
    """Shape of the Llama-family decoder; names as `transformers` has them.

    `num_key_value_heads` follows `num_attention_heads` unless named.
    """

    vocab_size: Positive = 256
    hidden_size: Positive = 128
    intermediate_size: Positive = 352
    num_hidden_layers: Layers = 4
    num_attention_heads: Positive = 4
    num_key_value_heads: Positive = 4
    max_position_embeddings: Positive = 128
    rms_norm_eps_nano: Positive = 1_000
    rope_theta: Positive = 10_000
    init_std_nano: Annotated[int, Field(ge=1, le=NANO)] = 20_000_000
    tie_word_embeddings: bool = True

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, values: object) -> object:
        return follow(values, "num_key_value_heads", "num_attention_heads")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.hidden_size % (2 * self.num_attention_heads):
            raise ContradictionError(
                "model.hidden_size",
                f"a multiple of 2 * num_attention_heads = {2 * self.num_attention_heads}",
                self.hidden_size,
                "name such a multiple: rotary embeddings need heads of equal, even width",
            )
        if self.num_attention_heads % self.num_key_value_heads:
            raise ContradictionError(
                "model.num_key_value_heads",
                f"a divisor of num_attention_heads = {self.num_attention_heads}",
                self.num_key_value_heads,
                "let every key-value head serve the same number of query heads",
            )
        return self


class StartSection(FrozenModel):
    """The first weights: drawn from the run's address, or given by its creator.

    Everybody computes drawn weights. Given ones are fetched under the genesis root on chain.
    """

    weights: Literal["drawn", "given"] = "drawn"


class DataSection(FrozenModel):
    """Which sequences are trained on; `manifest_hash` is empty until the data is prepared."""

    manifest_hash: HexDigest = ""
    sequence_tokens: Annotated[int, Field(ge=1, le=2**24 - 1)] = 128


class DemoSection(FrozenModel):
    """DeMo encoding (protocol section 5.2)."""

    k: Literal[1, 2, 4, 8, 16, 32, 64] = 32
    beta_micro: Annotated[int, Field(ge=0, lt=MICRO)] = 950_000
    alpha_micro: Annotated[int, Field(ge=0, le=MICRO)] = MICRO


class ScheduleSection(FrozenModel):
    """Learning rate and decay over the rounds (protocol section 5.5): R, L, W, D and wd.

    `decay_from_round` follows `rounds` (no decay) unless named.
    """

    rounds: Positive = 1_000
    lr_nano: Annotated[int, Field(ge=1, le=NANO)] = 1_000_000
    warmup_rounds: NonNegative = 0
    decay_from_round: NonNegative = 1_000
    wd_nano: Annotated[int, Field(ge=0, le=NANO)] = 0

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, values: object) -> object:
        return follow(values, "decay_from_round", "rounds")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.warmup_rounds <= self.decay_from_round <= self.rounds:
            raise ContradictionError(
                "schedule.decay_from_round",
                f"warmup_rounds = {self.warmup_rounds} to rounds = {self.rounds}",
                self.decay_from_round,
                "order the schedule: warmup_rounds <= decay_from_round <= rounds",
            )
        if self.lr_nano * self.wd_nano >= NANO**2:
            raise ContradictionError(
                "schedule.wd_nano",
                f"lr * wd below 1, with lr_nano = {self.lr_nano}",
                self.wd_nano,
                "lower one of them: a round would leave nothing of the weights",
            )
        return self


class TrainSection(FrozenModel):
    """The making of one gradient by a trainer; the reference mode of audits does exactly this.

    `microbatch_sequences` follows `sequences_per_payload` (one batch) unless named.
    """

    sequences_per_payload: Positive = 8
    microbatch_sequences: Positive = 8
    clip_micro: Annotated[int, Field(ge=1, le=1_000 * MICRO)] = MICRO

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, values: object) -> object:
        return follow(values, "microbatch_sequences", "sequences_per_payload")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.sequences_per_payload % self.microbatch_sequences:
            raise ContradictionError(
                "train.microbatch_sequences",
                f"a divisor of sequences_per_payload = {self.sequences_per_payload}",
                self.microbatch_sequences,
                "choose equal microbatches",
            )
        return self


class JudgeSection(FrozenModel):
    """Tolerances of the audit of work (protocol section 7).

    Work is ok up to the milder of two bounds and a mismatch beyond the harsher one. They are at
    least a factor of 1.5 apart, so that honest judges whose numerics differ never contradict each
    other. `troth calibrate` proposes all of them for a model.
    """

    openings_tiles: Annotated[int, Field(ge=1, le=1_024)] = 64
    ok_bound_micro: Micro = 30_000
    mismatch_bound_micro: Micro = 100_000
    tile_bound_micro: Micro = 120_000
    tile_mismatch_bound_micro: Micro = 180_000
    ok_tiles: Annotated[int, Field(ge=0, le=2)] = 2
    mismatch_tiles: Annotated[int, Field(ge=3, le=1_024)] = 6
    tile_mismatch_micro: Micro = 500_000
    tile_forged_micro: Micro = 3 * MICRO
    residual_bound_micro: Micro = 20 * MICRO
    residual_mismatch_micro: Micro = 200 * MICRO
    residual_tile_ok_micro: Micro = 60 * MICRO
    gradient_floor_micro: Annotated[int, Field(ge=1, le=MICRO)] = 10_000
    sent_floor_log2: Annotated[int, Field(ge=20, le=100)] = 40
    agreement_bound_micro: Annotated[int, Field(ge=0, le=MICRO)] = 0
    agreement_audits: NonNegative = 0
    calibrated: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        values = self.model_dump()
        for milder, harsher in PAIRS:
            if APART[1] * values[harsher] < max(APART[0] * values[milder], 1):
                raise ContradictionError(
                    f"judge.{harsher}",
                    f"at least 1.5 x {milder} = {values[milder]}",
                    values[harsher],
                    "keep the two apart: between them a verdict is inconclusive",
                )
        if self.mismatch_tiles > self.openings_tiles > NUM_FAR:
            raise ContradictionError(
                "judge.mismatch_tiles",
                f"at most openings_tiles = {self.openings_tiles}",
                self.mismatch_tiles,
                "open more tiles or count fewer",
            )
        if self.agreement_bound_micro and self.agreement_audits < LEAST_AGREEMENT_AUDITS:
            raise ContradictionError(
                "judge.agreement_bound_micro",
                f"0 while agreement_audits is below {LEAST_AGREEMENT_AUDITS}",
                self.agreement_bound_micro,
                "run troth calibrate until it has seen so many audits without a false alarm",
            )
        return self


class NetworkSection(FrozenModel):
    """Where bytes of the run may be had beside its members; nobody has to be asked or trusted.

    Hubs are the http(s) addresses of `troth hub`, stores are buckets with a prefix. Bytes from them
    are checked like all others.
    """

    hubs: Annotated[tuple[HubUrl, ...], Field(max_length=8, strict=False)] = ()
    stores: Annotated[tuple[StoreUrl, ...], Field(max_length=8, strict=False)] = ()

    @property
    def relays(self) -> tuple[str, ...]:
        """The addresses of all of them."""
        return (*self.hubs, *self.stores)


class RunConfig(FrozenModel):
    """Everything about a run that is hashed; covers the model and the data manifest."""

    version: Literal[3] = 3
    model: ModelSection = ModelSection()
    start: StartSection = StartSection()
    data: DataSection = DataSection()
    demo: DemoSection = DemoSection()
    schedule: ScheduleSection = ScheduleSection()
    train: TrainSection = TrainSection()
    judge: JudgeSection = JudgeSection()
    network: NetworkSection = NetworkSection()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.data.sequence_tokens > self.model.max_position_embeddings:
            raise ContradictionError(
                "data.sequence_tokens",
                f"at most model.max_position_embeddings = {self.model.max_position_embeddings}",
                self.data.sequence_tokens,
                "shorten the sequences or enlarge the model's context",
            )
        return self

    def canonical_json(self) -> bytes:
        """Return the ASCII JSON that is hashed: sorted keys, no blanks, integers only."""
        values = self.model_dump(mode="json")
        return json.dumps(values, sort_keys=True, separators=(",", ":")).encode("ascii")

    def config_hash(self) -> Digest:
        """Return H("troth:config", var(canonical JSON)); UnboundConfigError without a manifest."""
        self.manifest_digest()
        return H("troth:config", var(self.canonical_json()))

    def manifest_digest(self) -> Digest:
        """Return the 32 bytes of the data manifest's hash; UnboundConfigError without one."""
        if not self.data.manifest_hash:
            raise UnboundConfigError(
                "data.manifest_hash",
                "64 hexadecimal digits",
                "nothing",
                "prepare the data (troth data prepare) and bind its manifest hash",
            )
        return Digest(bytes.fromhex(self.data.manifest_hash))

    @property
    def has_given_start(self) -> bool:
        """Whether the first weights come from the creator, so that not everybody computes them."""
        return self.start.weights == "given"

    def with_given_start(self) -> Self:
        """Return the same configuration for first weights that its creator gives."""
        return self.model_copy(update={"start": StartSection(weights="given")})

    def with_manifest(self, manifest_hash: bytes) -> Self:
        """Return the same configuration bound to the data manifest with this 32-byte hash."""
        digest = b32(manifest_hash, "manifest hash").hex()
        return self.model_copy(
            update={"data": self.data.model_copy(update={"manifest_hash": digest})}
        )
