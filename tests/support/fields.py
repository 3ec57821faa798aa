"""Assertions on several fields of one record. A failure names each field that differs.

Owns: the comparison by name. Never: knows a record of the project.
"""

from collections.abc import Iterable, Mapping


def assert_fields(found: object, about: object = "", /, **expected: object) -> None:
    """Assert that a record has these values in these fields.

    about: whom or what the record describes, for the message of a failure.
    """
    __tracebackhide__ = True
    wrong = _differences(found, expected)
    if wrong:
        raise AssertionError(f"{_name(found, about)}: {'; '.join(wrong)}")


def assert_records(found: Iterable[object], expected: Iterable[Mapping[str, object]]) -> None:
    """Assert that there are as many records as expected ones, each with its fields, in order."""
    __tracebackhide__ = True
    records, rows = list(found), list(expected)
    if len(records) != len(rows):
        raise AssertionError(f"expected {len(rows)} records, found {len(records)}: {records}")
    wrong = [
        f"{_name(record, place)}: {difference}"
        for place, (record, row) in enumerate(zip(records, rows, strict=True))
        for difference in _differences(record, row)
    ]
    if wrong:
        raise AssertionError("; ".join(wrong))


def _differences(found: object, expected: Mapping[str, object]) -> list[str]:
    return [
        f"{name} is {getattr(found, name)!r}, expected {value!r}"
        for name, value in expected.items()
        if getattr(found, name) != value
    ]


def _name(found: object, about: object) -> str:
    kind = type(found).__name__
    return kind if about == "" else f"{kind} ({about})"
