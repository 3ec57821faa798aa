"""Measuring before the deposit: in the portions of --micro-batch, as the participant computes."""

import subprocess
import sys

import pytest
from support.portions import portions

from troth_attestation.verdict import VerdictKind
from troth_client.model.device import CPU, choose_device
from troth_client.participant.measuring import measure_machine
from troth_coordinator.rules.config import ModelSection, RunConfig

CONFIG = RunConfig(model=ModelSection(hidden_size=64, intermediate_size=64, num_hidden_layers=1))
WHOLE = CONFIG.train.microbatch_sequences
"""The whole batch: the config has one microbatch."""

SINGLE = choose_device("cpu", 1)


def measured(device, *, is_juror):
    """The measurements, and the portions of the own gradient and of the one to compare with."""
    ticks = iter((0.0, 9.0, *range(10, 100)))  # a gradient of nine seconds is not repeated
    with portions() as found:
        made = measure_machine(CONFIG, device, clock=lambda: float(next(ticks)), is_juror=is_juror)
    return made, found


def test_without_the_option_gradients_are_in_the_configs_microbatch():
    assert measured(CPU, is_juror=True)[1] == [WHOLE, WHOLE]


def test_one_that_only_trains_is_compared_with_single_sequences():
    for device, own in ((CPU, [WHOLE]), (SINGLE, [1] * WHOLE)):
        made, found = measured(device, is_juror=False)
        assert found == own + [1] * WHOLE
        assert made.verdict is VerdictKind.OK


def test_a_juror_is_measured_in_its_own_portions_and_in_the_configs():
    made, found = measured(SINGLE, is_juror=True)
    assert found == [1] * WHOLE + [WHOLE]
    assert made.verdict is VerdictKind.OK


LOGITS_BYTES = 4 * 256 * 16_384
"""Of one sequence."""
LIMITED = """
import resource
from dataclasses import replace
from troth_client.model.device import choose_device
from troth_client.participant.errors import MachineTooSmallError
from troth_client.participant.measuring import measure_machine
from troth_coordinator.rules.config import DataSection, ModelSection, RunConfig, TrainSection

model = ModelSection(vocab_size=16384, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
    num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=256)
train = TrainSection(sequences_per_payload=16, microbatch_sequences=16)
config = RunConfig(model=model, data=DataSection(sequence_tokens=256), train=train)
small = config.model_copy(update={"train": TrainSection(sequences_per_payload=1)})
measure_machine(small, choose_device("cpu"))  # what a process has anyway
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 400 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for size, is_juror in ((None, False), (1, False), (1, True)):
    try:
        found = measure_machine(config, choose_device("cpu", size), is_juror=is_juror)
        print(found.verdict.name, found.work_bytes)
    except MachineTooSmallError as error:
        print(error.expected, "|", error.next_step)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_machine_that_fits_with_the_option_alone_may_train_and_is_told_so():
    """Logits of 16 x 256 tokens take 256 MiB, and more than once; the process may have 400."""
    command = [sys.executable, "-c", LIMITED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    whole, trainer, juror = ended.stdout.splitlines()
    assert "one gradient of the model on cpu" in whole
    assert "--micro-batch" in whole
    verdict, work_bytes = trainer.split()
    assert verdict == "OK"
    assert 2 * LOGITS_BYTES < int(work_bytes) < 400 << 20, "the logits and their gradient"
    assert "a juror's gradient on the processor, 16 sequences at once" in juror
    assert "--role trainer" in juror
