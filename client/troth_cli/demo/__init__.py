"""`troth demo`: a whole network on this machine, from the chain to the trained weights.

Owns: nothing but the order in which its parts are read: `options.py`, `setup.py` (chain, data,
run), `participant.py` (one child process), `runner.py` (the order of it all), `live.py` and
`progress.py` (while it runs), `outcome.py` (how it ended for the cheat), `summary.py` and
`report.py` (what it proved, and in words).
Never: a rule of the protocol, or client code of its own: honest participants run what `troth join`
runs.
"""
