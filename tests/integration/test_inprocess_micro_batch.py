"""--micro-batch in a whole run: it holds for training, judging and validation, and changes none."""

import pytest
from support.portions import portions
from support.runs import AUDITED, assert_finished, events_of, included

from troth_client.data.shards import TokenData
from troth_client.model.device import CPU, choose_device
from troth_client.participant import process
from troth_client.participant.settings import ParticipantSettings
from troth_client.participant.validating import HeldOut
from troth_coordinator.rules.config import DataSection, RunConfig

NAMES = ("ada", "bob", "cyd", "dan")
ROUNDS = 4


async def played(run_factory, data, device):
    """A run whose members compute on a device, and how many sequences each pass took."""
    folder, manifest = data
    run = await run_factory.create(ROUNDS, **AUDITED)
    run.held_out = HeldOut(TokenData(folder, manifest, "validation"), ROUNDS, device)
    with portions() as found:
        for name in NAMES:
            one = await run.add(name)
            one.device = device
            await run.start(one)
        await run.finish()
    await assert_finished(run)
    return run, found


@pytest.mark.parametrize(
    ("device", "size"),
    [
        (choose_device("cpu", 1), 1),
        pytest.param(CPU, 2, marks=pytest.mark.long(reason="a second run to compare with")),
    ],
)
async def test_every_pass_of_its_members_takes_as_many_sequences(run_factory, data, device, size):
    run, found = await played(run_factory, data, device)
    assert set(found) == {size}
    assert included(run, "ada") == {round_: [0, 1, 2, 3] for round_ in range(ROUNDS)}
    judged = [event["verdict"] for name in NAMES for event in events_of(run, name, "judged")]
    assert set(judged) == {"OK"}
    assert events_of(run, "ada", "validated")


@pytest.mark.parametrize("size", [1, None])
def test_a_process_validates_as_its_settings_say(data, size):
    folder, manifest = data
    settings = ParticipantSettings(
        rpc_urls=(),
        run="",
        config=RunConfig(data=DataSection(sequence_tokens=manifest.sequence_tokens)).with_manifest(
            manifest.hash
        ),
        data=folder,
        state=folder,
        owner=bytes(64),
        session=bytes(64),
        device="cpu",
        validate_every=ROUNDS,
        microbatch_sequences=size,
    )
    assert process._held_out(settings).device == choose_device("cpu", size)
