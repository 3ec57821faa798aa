"""Training in a round: the root is hashed beside it; data of no use costs the round alone."""

import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from support.ports import Wrapped
from support.trainers import BATCH, CONFIG, IDS, TOKENS, weights
from support.views import PARAMS

from troth_attestation.state import state_root
from troth_client.checkpoint.state_store import StateStore
from troth_client.compression.codec import payload_root
from troth_client.compression.known_answer import choose_path
from troth_client.compression.residual import Residual
from troth_client.data.errors import ShardTokenError
from troth_client.model.device import CPU
from troth_client.model.weights import build, weight_views
from troth_client.runtime.base import ProcessRuntime
from troth_client.state.openings_store import OpeningsStore
from troth_client.state.past_states import PastStates
from troth_client.state.records import RoundPlan
from troth_client.state.replica import Replica
from troth_client.state.residual_archive import KeptRounds, ResidualArchive
from troth_client.state.residual_state import ResidualState, Undo
from troth_client.state.retention import Retention
from troth_client.state.round_state import RoundState
from troth_client.state.work import EncodedPayload, HonestWork
from troth_client.steps.produce import Made, header_of, train
from troth_client.storage import Store, StoreIdentity
from troth_client.telemetry.events import EventList
from troth_client.train.errors import BatchShapeError
from troth_client.train.learner import DEFAULT
from troth_coordinator.rules.ids import NONE, Digest, RoundIndex

MEETING_SECONDS = 30
"""How long a thread waits for the other one; where both are there, none waits."""
PLAN = RoundPlan(RoundIndex(0), 0, 0, True, True, True, IDS, NONE)


@pytest.fixture
def trainer(tmp_path):
    """The state and the work of a trainer of a real process before its first round."""
    model, path = build(CONFIG.model, weights()), choose_path("cpu")
    identity = StoreIdentity(bytes(32), b"o" * 32, CONFIG.config_hash())
    with Store(tmp_path / "state", identity, pytest.fail, durable=False) as store:
        replica = Replica(CONFIG, weight_views(model), path, PastStates(PARAMS.keep_rounds))
        undo = Undo(PARAMS.keep_rounds, CONFIG.demo.k, store.load_residual)
        state = RoundState(
            config=CONFIG,
            data=TOKENS,
            replica=replica,
            residual=ResidualState(Residual.of(CONFIG), replica.layout.num_tiles, undo, path),
            archive=ResidualArchive(store, KeptRounds(PARAMS.keep_rounds, PARAMS.ring)),
            store=store,
            states=StateStore(store, pytest.fail),
            retention=Retention.of(PARAMS),
            runtime=ProcessRuntime(0.001),
            events=EventList(),
        )
        openings = OpeningsStore(tmp_path / "openings")
        parts = (replica.layout, state.residual, state.archive, openings, path)
        yield state, HonestWork(CONFIG, model, CPU, *parts)


async def test_the_root_is_hashed_while_the_gradient_is_computed(trainer):
    """Each of both waits until the other has begun: one after the other, none would ever end."""
    state, work = trainer
    replica, both = state.replica, threading.Barrier(2)

    def meeting(compute, *args):
        both.wait(MEETING_SECONDS)
        return compute(*args)

    state.replica = Wrapped(replica, root=partial(meeting, replica.root))
    found = await train(state, Wrapped(work, gradient=partial(meeting, work.gradient)), PLAN)
    wanted = DEFAULT.gradient(work.model, BATCH, CONFIG.train, CPU)
    assert set(found.tensors) == set(wanted.tensors)
    for name, tensor in wanted.tensors.items():
        assert torch.equal(found.tensors[name], tensor), name
    assert replica.known_root.root == state_root(weights(), 0, 0, CONFIG.config_hash())


def refuse(error):
    """A computation that ends with this error."""

    def refused(*_):
        raise error

    return refused


REFUSALS = {
    "token": ShardTokenError(Path("train-00000.bin"), "tokens below 256", "token 300"),
    "shape": BatchShapeError("tokens in 0..255", "0..300", ""),
}


@pytest.mark.parametrize("kind", list(REFUSALS))
async def test_data_that_nobody_can_train_on_costs_a_round_and_no_process(trainer, kind):
    """The creator of the run made it so: its members have their stakes in it."""
    state, work = trainer
    if kind == "token":
        state.data = Wrapped(TOKENS, sequences=refuse(REFUSALS[kind]))
    else:
        work = Wrapped(work, gradient=refuse(REFUSALS[kind]))
    assert await train(state, work, PLAN) is None
    (refused,) = state.events.named("gradient_refused")
    assert refused["round"] == PLAN.round
    assert refused["reason"] == str(REFUSALS[kind])


def test_a_header_names_the_root_that_the_payload_came_with(trainer):
    """It is hashed once, where the payload is decoded as a check: in a thread."""
    state, work = trainer
    made = work.propose(PLAN.round, work.gradient(BATCH))
    payload = work.encode(made)
    assert payload.root == payload_root(payload.data)
    at = SimpleNamespace(program=bytes(32))
    identity = SimpleNamespace(owner_address=bytes(32), session_address=bytes(32))
    chain = SimpleNamespace(genesis_hash=bytes(32), at=at, run=bytes(32), index=0)
    chain.identity = identity
    named = EncodedPayload(payload.data, Digest(b"r" * 32))
    header = header_of(state, chain, PLAN, Made(state.residual.momentum, made, named, 0))
    assert header.payload_root == named.root
    assert header.payload_bytes == len(payload.data)
