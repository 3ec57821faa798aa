"""The stopwatch of a rank: each measured unit ends with an exchange, and none is the first one."""

import pytest
from torch import distributed
from torch._C._distributed_c10d import FileStore

from troth_simulation.profile.rank import LOOPBACK, RankSetup, measured


class Recorder:
    """A method that keeps the steps which it is asked for, and a material whose batch is one."""

    def __init__(self):
        self.steps = []

    def step(self, step, batch):
        assert batch == step
        self.steps.append(step)

    def batch(self, step):
        return step


@pytest.fixture
def alone(tmp_path):
    """A process group of this process."""
    store = FileStore(str(tmp_path / "store"), 1)
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield tmp_path
    distributed.destroy_process_group()


@pytest.mark.parametrize(
    ("unit_steps", "expected"), [(1, [0, 1, 2]), (4, [3, 4, 5, 6, 7, 8, 9, 10, 11])]
)
def test_an_exchange_comes_before_the_first_measured_unit_and_at_the_end_of_each(
    alone, unit_steps, expected
):
    recorder = Recorder()
    setup = RankSetup(
        workload=None,
        method="diloco",
        rank=0,
        num_units=2,
        unit_steps=unit_steps,
        interface=LOOPBACK,
        folder=alone,
        timeout_seconds=1.0,
    )
    report = measured(setup, recorder, recorder)
    assert recorder.steps == expected
    assert len(report.seconds) == 2
    exchanges = [step for step in recorder.steps if (step + 1) % unit_steps == 0]
    assert exchanges == [unit * unit_steps - 1 for unit in (1, 2, 3)]
