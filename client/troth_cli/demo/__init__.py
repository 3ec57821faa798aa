"""`troth demo`: a whole network on this machine, from the chain to the trained weights.

Owns: the demonstration. Its parts, in reading order: `options.py`; `setup.py` for chain, data and
run. Then `participant.py` for one child process and `runner.py` for the whole sequence. `live.py`
and `progress.py` watch the run. `outcome.py` reads the end of the cheat; `summary.py` checks the
claims; `report.py` puts them in words.
Never: a rule of the protocol, or client code of its own. Honest participants run the code of
`troth join`.
"""
