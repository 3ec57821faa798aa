"""Program logs to events: ours, in order, and an honest word on what is missing."""

import base64
import struct

import pytest
from solders.pubkey import Pubkey

from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.chain.event_types import EVENT_TYPES, Event
from troth_coordinator.chain.event_types_life import RunFunded
from troth_coordinator.chain.event_types_rounds import Attested
from troth_coordinator.chain.events import EventLog
from troth_coordinator.chain.idl import discriminator
from troth_coordinator.chain.layouts import program_layout

LOG = EventLog(program_codec())
OURS = str(program_codec().program_id)
OTHER = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr"
RUN = Pubkey.from_bytes(bytes(range(32)))


def funded(sequence):
    body = bytes(RUN) + struct.pack("<QQ", sequence, 7) + bytes(RUN) + struct.pack("<QQ", 5, 6)
    return discriminator("event", "RunFunded") + body, body


def data_line(data):
    return "Program data: " + base64.b64encode(data).decode()


def ours(*lines, depth=1):
    return [f"Program {OURS} invoke [{depth}]", *lines, f"Program {OURS} success"]


def sequences(logs):
    return [event.sequence for event in LOG.read(logs).events]


def test_an_event_with_its_body():
    data, body = funded(3)
    parsed = LOG.read(ours("Program log: Instruction: FundRun", data_line(data)))
    assert parsed.is_complete
    (event,) = parsed.events
    assert event == RunFunded(
        run=RUN, sequence=3, slot=7, funder=RUN, lamports=5, reward_pool=6, body=body
    )
    assert event.kind == 5
    assert event.name == "RunFunded"


def test_order_is_kept_over_instructions():
    logs = ours(data_line(funded(1)[0]), data_line(funded(2)[0])) + ours(data_line(funded(3)[0]))
    assert sequences(logs) == [1, 2, 3]


def test_data_of_other_programs_is_not_ours():
    fake = data_line(funded(66)[0])
    logs = [
        f"Program {OTHER} invoke [1]",
        fake,
        f"Program {OTHER} success",
        *ours(
            f"Program {OTHER} invoke [2]",
            fake,
            f"Program {OTHER} consumed 5 of 10 compute units",
            f"Program {OTHER} success",
            data_line(funded(1)[0]),
        ),
        fake,
    ]
    assert sequences(logs) == [1]


def test_a_program_that_prints_our_log_lines_fools_nobody():
    """A log message always carries the prefix "Program log: ", so it cannot open a frame."""
    logs = [
        f"Program {OTHER} invoke [1]",
        f"Program log: Program {OURS} invoke [2]",
        data_line(funded(66)[0]),
        f"Program {OTHER} success",
    ]
    assert sequences(logs) == []


def test_ours_called_by_another_program():
    logs = [
        f"Program {OTHER} invoke [1]",
        *ours(data_line(funded(1)[0]), depth=2),
        data_line(funded(66)[0]),
        f"Program {OTHER} success",
    ]
    assert sequences(logs) == [1]


def test_a_truncated_log_is_noticed():
    parsed = LOG.read([*ours(data_line(funded(1)[0]))[:-1], "Log truncated"])
    assert [event.sequence for event in parsed.events] == [1]
    assert not parsed.is_complete


def test_depth_survives_a_lost_end_line():
    logs = [f"Program {OTHER} invoke [1]", *ours(data_line(funded(1)[0]))]
    assert sequences(logs) == [1]


@pytest.mark.parametrize("text", ["", "!!!", "AAAA", base64.b64encode(bytes(40)).decode()])
def test_data_that_is_no_event_is_skipped(text):
    assert sequences(ours("Program data: " + text, data_line(funded(1)[0]))) == [1]


def test_a_known_event_that_is_cut_is_an_error():
    data, _body = funded(1)
    with pytest.raises(ArtifactError, match="RunFunded"):
        LOG.read(ours(data_line(data[:-1])))


def test_every_event_of_the_program_has_a_record_and_its_kind():
    assert set(EVENT_TYPES) == set(program_codec().event_names.values())
    kinds = program_layout().enums["event_kind"]
    for name, record in EVENT_TYPES.items():
        assert record.kind == kinds.get(name), name
        assert issubclass(record, Event)
    plain = {name for name, record in EVENT_TYPES.items() if record.kind is None}
    assert plain == {"PayloadCommitted", "Attested", "RoundClosed"}


def test_plain_events_have_no_sequence():
    body = bytes(RUN) + bytes(200)
    event = LOG.read(ours(data_line(discriminator("event", "Attested") + body))).events[0]
    assert isinstance(event, Attested)
    assert event.sequence is None
    assert event.possession == bytes(64)
