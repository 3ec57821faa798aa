"""Inner calls to events: ours, in order; what others send does not count, nor what is missing."""

import re
import struct
from dataclasses import replace
from pathlib import Path

import based58
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.pubkey import Pubkey
from support.legacy_idl import discriminator

from troth_coordinator.chain import base58
from troth_coordinator.chain.addresses import event_authority_address
from troth_coordinator.chain.base58 import MAX_CHARACTERS
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.chain.event_types import EVENT_TYPES, Event
from troth_coordinator.chain.event_types_life import RunFunded
from troth_coordinator.chain.event_types_rounds import Attested
from troth_coordinator.chain.events import EVENT_TAG, EventReader
from troth_coordinator.chain.failure import TransactionFailure
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.rpc import InnerCall, TransactionRecord

READER = EventReader(program_codec())
OURS = program_codec().program_id
AUTHORITY = event_authority_address()
MEMO = Pubkey.from_string("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")
RUN = Pubkey.from_bytes(bytes(range(32)))


def body_of(sequence):
    return bytes(RUN) + struct.pack("<QQ", sequence, 7) + bytes(RUN) + struct.pack("<QQ", 5, 6)


def funded(sequence):
    return discriminator("event", "RunFunded") + body_of(sequence)


def packed(*events):
    return EVENT_TAG + b"".join(struct.pack("<H", len(event)) + event for event in events)


def call(data, *, program=OURS, accounts=(AUTHORITY,)):
    return InnerCall(program, accounts, data)


def record(*calls, logs=()):
    return TransactionRecord(7, None, logs, 5_000, 100, calls)


def sequences(*calls):
    return [event.sequence for event in READER.read(record(*calls)).events]


def test_an_event_with_its_body():
    parsed = READER.read(record(call(packed(funded(3)))))
    assert parsed.is_complete
    (event,) = parsed.events
    assert event == RunFunded(
        run=RUN, sequence=3, slot=7, funder=RUN, lamports=5, reward_pool=6, body=body_of(3)
    )
    assert event.kind == 5
    assert event.name == "RunFunded"


def test_order_is_kept_inside_a_call_and_over_calls():
    first, second = call(packed(funded(1), funded(2))), call(packed(funded(3)))
    assert sequences(first, second) == [1, 2, 3]


def test_a_call_without_events():
    assert READER.read(record(call(EVENT_TAG))).events == ()


@pytest.mark.parametrize(
    "fake",
    [
        call(packed(funded(66)), program=MEMO),
        call(packed(funded(66)), accounts=()),
        call(packed(funded(66)), accounts=(RUN,)),
        call(packed(funded(66)), accounts=(AUTHORITY, AUTHORITY)),
        call(b"\0" + packed(funded(66))),
        call(packed(funded(66))[8:]),
    ],
    ids=["foreign program", "no account", "other account", "two accounts", "other tag", "no tag"],
)
def test_only_calls_of_our_program_signed_by_its_authority_count(fake):
    assert sequences(fake, call(packed(funded(1))), fake) == [1]


def in_base58(made):
    """The call as an RPC node writes it."""
    return replace(made, written=based58.b58encode(made.data).decode())


def test_a_call_in_base58_is_read_like_its_bytes():
    assert sequences(in_base58(call(packed(funded(1), funded(2))))) == [1, 2]


@pytest.mark.parametrize(
    ("program", "accounts"), [(MEMO, (AUTHORITY,)), (OURS, (RUN,)), (OURS, (AUTHORITY, RUN))]
)
def test_bytes_of_other_calls_are_not_even_decoded(program, accounts):
    """Sixty-two of ten thousand bytes in one transaction held a reader for 2.6 seconds."""
    other = InnerCall(program, accounts, "0 is no base58")
    assert sequences(other, in_base58(call(packed(funded(1))))) == [1]


@pytest.mark.parametrize("text", ["0", "z0z", "\xe9", "1" * (MAX_CHARACTERS + 1)])
def test_a_call_of_ours_that_the_program_cannot_have_made_is_an_error(text):
    with pytest.raises(ArtifactError, match="event call"):
        READER.read(record(call(text)))


def test_the_longest_call_of_the_program_fits():
    source = Path(__file__).parents[3] / "programs/coordinator/src/events/journal.rs"
    (capacity,) = re.findall(r"const CAPACITY: usize = ([\d_]+);", source.read_text())
    longest = EVENT_TAG + bytes([255]) * (int(capacity) - len(EVENT_TAG))
    for data in (longest, b"\xff" * int(capacity), bytes(int(capacity))):
        assert in_base58(call(data)).data == data


@given(st.binary(max_size=100), st.integers(0, 3))
def test_base58_is_that_of_the_library(data, num_zeros):
    data = bytes(num_zeros) + data
    assert base58.decode(based58.b58encode(data).decode()) == data


def test_log_lines_neither_hide_nor_make_events():
    """Memos fill the log of a transaction; a line that looks like an event is only a line."""
    logs = (*["Program log: Memo (len 0)"] * 400, "Log truncated")
    parsed = READER.read(record(call(packed(funded(1))), logs=logs))
    assert [event.sequence for event in parsed.events] == [1]
    assert parsed.is_complete


def test_a_node_without_inner_calls_is_no_transaction_without_events():
    parsed = READER.read(replace(record(), inner_calls=None))
    assert parsed.events == ()
    assert not parsed.is_complete


def test_a_failed_transaction_has_no_events():
    """Nodes list the calls of failed transactions too, up to the one that failed."""
    failure = TransactionFailure("InstructionError", 1, "Custom", 6003)
    parsed = READER.read(replace(record(call(packed(funded(1)))), failure=failure))
    assert parsed.events == ()
    assert parsed.is_complete


@pytest.mark.parametrize("unknown", [b"", b"12", bytes(8), bytes(300)])
def test_an_unknown_event_is_skipped(unknown):
    assert sequences(call(packed(funded(1), unknown, funded(2)))) == [1, 2]


@pytest.mark.parametrize("cut", [1, 100, len(funded(1)) + 1])
def test_a_length_beyond_the_call_is_an_error(cut):
    with pytest.raises(ArtifactError, match="event call"):
        READER.read(record(call(packed(funded(1))[:-cut])))


def test_a_known_event_that_is_too_short_is_an_error():
    with pytest.raises(ArtifactError, match="RunFunded"):
        READER.read(record(call(packed(funded(1)[:-1]))))


def test_every_event_of_the_program_has_a_record_and_its_kind():
    assert set(EVENT_TYPES) == set(program_codec().event_names.values())
    kinds = program_layout().enums["event_kind"]
    for name, kind in EVENT_TYPES.items():
        assert kind.kind == kinds.get(name), name
        assert issubclass(kind, Event)
    plain = {name for name, kind in EVENT_TYPES.items() if kind.kind is None}
    assert plain == {"PayloadCommitted", "Attested", "RoundClosed"}


def test_plain_events_have_no_sequence():
    attested = discriminator("event", "Attested") + bytes(RUN) + bytes(200)
    (event,) = READER.read(record(call(packed(attested)))).events
    assert isinstance(event, Attested)
    assert event.sequence is None
    assert event.possession == bytes(64)
