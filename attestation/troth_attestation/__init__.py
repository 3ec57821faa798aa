"""The judge: what was signed, what was opened, whether the work was done, and what that costs.

Owns: every check of other people's bytes that needs no GPU and no network; draws, tests of work,
verdicts, quorums, penalties.
Never: imports torch, opens a file or a socket, or holds a key longer than one call.
Next: `header.py` (what a trainer signs), `sampling.py` (who is audited), `work.py` (the tests).
"""
