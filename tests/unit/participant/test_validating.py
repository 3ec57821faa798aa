"""When validation is due, and when it is left out, on views that the test writes."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from support.views import network, run_view

from troth_client.participant import validating
from troth_client.participant.validating import HeldOut
from troth_client.telemetry.events import EventList
from troth_client.train.errors import NonFiniteGradientError
from troth_coordinator.rules.phase import Phase

EVERY = 4


@dataclass
class Machine:
    """A member as far as validation sees it; `rounds` are on its disk."""

    rounds: list[int] = field(default_factory=lambda: list(range(100)))
    events: EventList = field(default_factory=EventList)
    measured: list[int] = field(default_factory=list)
    open_round: int = 0

    def member(self):
        store = SimpleNamespace(weight_rounds=lambda: self.rounds)
        runtime = SimpleNamespace(compute=self.compute, seconds=lambda: None)
        state = SimpleNamespace(store=store, runtime=runtime, events=self.events, config=None)
        return SimpleNamespace(state=state, chain=SimpleNamespace(watch=self))

    @property
    def latest(self):
        return self.view()

    def view(self, phase=Phase.ATTEST):
        return network(run=run_view(round=self.open_round, phase=phase))

    async def compute(self, _function, _store, _config, _held_out, round_):
        self.measured.append(round_)
        return self.result(round_)

    def result(self, _round):
        return 3_000_000, 64

    async def see(self, validation, round_, phase=Phase.ATTEST):
        self.open_round = round_
        due = validation.due(self.view(phase))
        if due is not None:
            await validation.measure(due)


def started(machine):
    return validating._Validation(machine.member(), HeldOut([], EVERY, None))


async def test_a_round_is_measured_once_and_while_others_attest():
    machine = Machine()
    validation = started(machine)
    await machine.see(validation, 0, Phase.COMMIT)
    assert machine.measured == []
    for round_ in (0, 0, 1, 2, 3, 4, 4, 5):
        await machine.see(validation, round_)
    assert machine.measured == [0, 4]
    await machine.see(validation, 9)
    assert machine.measured == [0, 4, 8], "its Attest phase was not seen, its weights are there"


async def test_what_was_due_before_a_member_came_is_not_measured():
    machine = Machine()
    validation = started(machine)
    for round_ in (6, 7, 8):
        await machine.see(validation, round_)
    assert machine.measured == [8]


async def test_a_machine_that_is_behind_leaves_a_round_out():
    machine = Machine(rounds=[0, 1, 2])
    validation = started(machine)
    for round_ in (3, 4, 5):
        await machine.see(validation, round_)
    assert machine.measured == []
    (skipped,) = machine.events.named("validation_skipped")
    assert skipped["round"] == 4
    assert "behind the run" in skipped["reason"]


async def test_a_validation_slower_than_the_rounds_leaves_the_next_one_out():
    machine = Machine()
    validation = started(machine)

    def slow(_round):
        machine.open_round = 9
        return 3_000_000, 64

    machine.result = slow
    await machine.see(validation, 4)
    (skipped,) = machine.events.named("validation_skipped")
    assert skipped["round"] == 8
    assert "took longer" in skipped["reason"]
    await machine.see(validation, 10)
    await machine.see(validation, 12)
    assert machine.measured == [4, 12]


@pytest.mark.parametrize("phase", [Phase.COOLDOWN, Phase.FINISHED])
async def test_the_weights_at_the_end_are_measured_too(phase):
    machine = Machine()
    validation = started(machine)
    await machine.see(validation, 19)
    await machine.see(validation, 20, phase)
    assert machine.measured == [20]


async def test_a_loss_that_is_no_number_is_said_and_the_next_round_is_measured():
    machine = Machine()
    validation = started(machine)

    def diverged(_round):
        raise NonFiniteGradientError("a finite loss", "nan", "Look at the learning rate.")

    machine.result = diverged
    await machine.see(validation, 4)
    assert len(machine.events.named("validation_skipped")) == 1
    del machine.result
    await machine.see(validation, 8)
    assert machine.measured == [4, 8]
    assert [event["round"] for event in machine.events.named("validated")] == [8]
