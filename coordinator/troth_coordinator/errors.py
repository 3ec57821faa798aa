"""The root of every error that this project raises on purpose.

Owns: the base class, what it carries, and the one sentence that it makes of that.
Never: an error of a part; each package draws its own tree in its `errors.py`.
Next: `rules/errors.py` and `chain/errors.py`; `troth_attestation`, `troth_client` and
`troth_localnet` have theirs.
"""


class TrothError(Exception):
    """Something a user can act on: what was expected, what was found, and the next step.

    `subject` is the thing that it is about, "" where the expectation names it.
    """

    def __init__(self, expected: str, found: object, next_step: str, subject: str = "") -> None:
        about = f"{subject}: " if subject else ""
        super().__init__(f"{about}expected {expected}, found {found}. {_sentence(next_step)}")
        self.subject = subject
        self.expected = expected
        self.found = str(found)
        self.next_step = next_step


class SubjectError(TrothError):
    """A TrothError that always names its subject, first."""

    def __init__(self, subject: str, expected: str, found: object, next_step: str) -> None:
        super().__init__(expected, found, next_step, subject)


def _sentence(text: str) -> str:
    """Return the text with a capital letter at its beginning and a stop at its end."""
    stop = "" if text.endswith((".", "?", "!")) else "."
    return text[:1].upper() + text[1:] + stop
