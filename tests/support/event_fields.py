"""Reads a field of a participant's event as the type that the event gives it.

Owns: a number, a text, a list of numbers; another type fails the test. Never: knows an event.
Next: runs.py, which says what whole runs show.
"""

from troth_client.telemetry.events import Event


def number(event: Event, field: str) -> int:
    value = event[field]
    assert isinstance(value, int), event
    return value


def text(event: Event, field: str) -> str:
    value = event[field]
    assert isinstance(value, str), event
    return value


def numbers(event: Event, field: str) -> list[int]:
    value = event[field]
    assert isinstance(value, list), event
    return value
