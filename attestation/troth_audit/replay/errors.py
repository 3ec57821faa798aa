"""The one exception of the auditor's replay. It never reaches a user.

Owns: `MisfitError`, with which a script of the recount gives up on an event.
Never: an error that somebody can act on: what is wrong with a run is a finding.
Next: `findings.py`; `recount.py`, which catches it.
"""

from troth_audit.replay.findings import Rule


class MisfitError(Exception):
    """An event speaks about what the events before it rule out.

    `Recount` turns it into a finding of that rule, which shows `expected` and `found` as they are.
    So it is no TrothError, and has no next step.
    """

    def __init__(self, rule: Rule, expected: object, found: object) -> None:
        super().__init__(f"{rule.value}: expected {expected}, found {found}")
        self.rule = rule
        self.expected = expected
        self.found = found
