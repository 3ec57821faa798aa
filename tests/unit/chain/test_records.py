"""Fixed-size records: what each dtype string means, and what is skipped."""

import struct

import pytest

from troth_coordinator.chain.records import Record, form_of

STRUCTS = {"Pair": ["u1", "<u2"], "Wrapped": ["Pair", "(2,)Pair"]}


def read(fields, size, data, count=1):
    """Records of fields given as (offset, dtype string)."""
    forms = [(offset, form_of(text, STRUCTS)) for offset, text in fields]
    return Record(forms, size).read(data, count)


@pytest.mark.parametrize(
    ("text", "data", "value"),
    [
        ("u1", b"\xff", 255),
        ("|u1", b"\x07", 7),
        ("<u2", b"\x01\x02", 513),
        ("<u4", b"\1\0\0\0", 1),
        ("<u8", b"\xff" * 8, 2**64 - 1),
        ("<i4", b"\xff" * 4, -1),
        ("V3", b"\1\2\3", b"\1\2\3"),
        ("(2,)u1", b"\1\2", b"\1\2"),
        ("(2,)<u2", b"\1\0\2\0", (1, 2)),
        ("Pair", b"\1\2\0", (1, 2)),
        ("(2,)Pair", b"\1\2\0\3\4\0", ((1, 2), (3, 4))),
        ("Wrapped", bytes(9), ((0, 0), ((0, 0), (0, 0)))),
    ],
)
def test_every_form_is_read_as_plain_values(text, data, value):
    form = form_of(text, STRUCTS)
    assert form.size == len(data)
    assert read([(0, text)], form.size, data) == [(value,)]


@pytest.mark.parametrize("text", ["<f4", "float32", "Absent", "(2,)Absent", ">u4", ""])
def test_other_strings_are_refused(text):
    with pytest.raises(KeyError):
        form_of(text, STRUCTS)


def test_bytes_between_the_chosen_fields_are_skipped_in_every_record():
    data = b"".join(struct.pack("<BxxHx", number, 10 * number) for number in (1, 2, 3))
    first, second = zip(*read([(0, "u1"), (3, "<u2")], 6, data, 3), strict=True)
    assert list(first) == [1, 2, 3]
    assert list(second) == [10, 20, 30]
    assert [value for (value,) in read([(3, "<u2")], 6, data, 2)] == [10, 20]


def test_values_come_in_the_order_asked_for():
    data = struct.pack("<BHHB", 1, 2, 3, 4)
    fields = [(5, "u1"), (1, "(2,)<u2"), (0, "u1")]
    ((last, pair, first),) = read(fields, 6, data)
    assert last == 4
    assert list(pair) == [2, 3]
    assert first == 1


def test_fewer_records_than_asked_for_are_an_error():
    with pytest.raises(ValueError, match="2 records of 3 bytes in 5 bytes"):
        read([(0, "Pair")], 3, bytes(5), 2)
