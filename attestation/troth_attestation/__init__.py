"""The judge: checks of signed headers, openings and work, verdicts and penalties.

Owns: every check of other people's bytes that needs no GPU and no network; draws, tests of work,
verdicts, quorums, penalties.
Never: imports torch, opens a file or a socket, or holds a key longer than one call.
Next: `header.py` (the signed bytes), `sampling.py` (the choice of targets), `work.py` (the tests).
"""
