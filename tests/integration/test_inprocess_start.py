"""Runs that start from given weights: one member has them, the others fetch them under the root."""

from dataclasses import replace

import numpy as np
import pytest
from support.runs import (
    AUDITED,
    FIVE,
    MODEL,
    NO_AUDITS,
    Chronicle,
    assert_finished,
    events_of,
    member,
    until_round,
)

from troth_attestation.quorum import AuditOutcome
from troth_client.model.init import initial_weights
from troth_client.model.weights import build
from troth_client.network.errors import NoGradientError
from troth_client.participant.errors import ConfigMismatchError
from troth_client.train.evaluate import evaluate
from troth_coordinator.rules.assignment import SequenceOrder, rank_start
from troth_coordinator.rules.config import ModelSection
from troth_simulation.hub import SimulatedHub


@pytest.fixture
def given(run_factory):
    """Weights that no run's address gives, as the start of the runs of a test."""
    drawn = initial_weights(b"g" * 32, ModelSection(**MODEL))
    run_factory.given = {n: (value * 3).astype(np.float32) for n, value in drawn.items()}
    return run_factory.given


async def started(run, names):
    """Members of these names; the first one has the weights on its own machine."""
    for name in names:
        (await run.add(name)).has_start = name == names[0]
    for one in run.members:
        await run.start(one)


@pytest.mark.long(reason="a whole run with audits; make test has a start that is fetched")
async def test_one_has_the_start_the_others_fetch_it_and_audits_clear_it(run_factory, given):
    quiet = {"openings_slots": 200, "case_slots": 10}
    run = await run_factory.create(8, **AUDITED | quiet)
    reported = Chronicle(run)
    await started(run, FIVE)
    await run.finish()
    await assert_finished(run)
    for name in FIVE[1:]:
        (fetched,) = events_of(run, name, "fetched")
        assert fetched["round"] == 0, name
    assert not events_of(run, FIVE[0], "fetched")
    assert not [one for name in FIVE for one in events_of(run, name, "announce_refused")]
    settled = reported.named("AuditSettled", outcome=int(AuditOutcome.CLEARED))
    assert len(reported.named("AuditOpened")) == len(settled) >= 8


async def test_the_first_loss_is_that_of_the_start_weights(run_factory, given):
    run = await run_factory.create(2, **NO_AUDITS)
    await started(run, ("anna", "bob"))
    await run.finish()
    await assert_finished(run)
    config = run.settings.config
    count = config.train.sequences_per_payload
    order = SequenceOrder(len(run.data), config.manifest_digest())
    for rank, name in enumerate(("anna", "bob")):
        first = events_of(run, name, "trained")[0]
        batch = run.data.sequences(order.sequences(rank_start(0, rank, count), count))
        expected = evaluate(build(config.model, given), batch, config.train.microbatch_sequences)
        assert abs(first["loss_micro"] - expected) <= 1, name


async def test_a_newcomer_fetches_the_start_before_it_deposits(run_factory, given):
    run = await run_factory.create(12, **NO_AUDITS)
    await started(run, ("anna", "bob"))
    await until_round(run, 2)
    await run.add_late("carl")
    await run.finish()
    await assert_finished(run)
    names = [event["event"] for event in member(run, "carl").events.events]
    assert names.index("fetched") < names.index("arrived") < names.index("joined")


@pytest.mark.parametrize("value", [np.nan, 1e25])
async def test_nobody_deposits_for_weights_that_give_no_gradient(run_factory, given, value):
    """Members of such a run can commit nothing, and pay for their absence in each round."""
    given["model.norm.weight"][:] = value
    run = await run_factory.create(4, **NO_AUDITS)
    await started(run, ("anna",))
    carl = await run.add_late("carl")
    with pytest.raises(NoGradientError, match="Nothing was deposited"):
        await carl.task
    carl.task = None
    assert (await run.view()).run.num_participants == 1


async def test_members_that_nobody_reaches_bring_the_start_to_a_hub(run_factory, given, tmp_path):
    """A newcomer that knows one hub needs no member that listens."""
    run = await run_factory.create(3, **NO_AUDITS)
    run.wrap = lambda _member, ports: replace(ports, hubs=("hub",))
    for name in ("anna", "bob"):
        await run.add(name, listens=False)
    member(run, "anna").has_start = True
    hub = SimulatedHub(run, "hub", tmp_path / "hub")
    hub.start()
    for one in run.members:
        await run.start(one)
    await run.finish()
    await hub.stop()
    await assert_finished(run)
    assert events_of(run, "bob", "fetched")[0]["round"] == 0


async def test_another_start_than_the_one_on_chain_is_refused(run_factory, given):
    run = await run_factory.create(2, **NO_AUDITS)
    (await run.add("anna")).has_start = True
    run.given = given | {"model.norm.weight": given["model.norm.weight"] * 2}
    with pytest.raises(ConfigMismatchError, match="genesis root") as caught:
        await run.start(run.members[0])
    assert "the folder of the start weights" in str(caught.value)
