"""The root of every error that a client raises on purpose.

Owns: the base class and the shape of its sentence. Never: an error of a part; each folder draws its
own branch in its `errors.py` (`model`, `data`, `train`, `store`, `payload`, `transport`, ...).
Next: the `errors.py` of the part that interests you; `files.py` holds those of the file system.
"""


class ClientError(Exception):
    """Something a user can act on: the message says expected, found and the next step."""

    def __init__(self, expected: str, found: str, next_step: str, subject: str = "") -> None:
        about = f"{subject}: " if subject else ""
        super().__init__(f"{about}expected {expected}; found {found}. {next_step}")
        self.subject = subject
        self.expected = expected
        self.found = found
        self.next_step = next_step
