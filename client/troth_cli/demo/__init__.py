"""`troth demo`: a whole network on this machine, from the chain to the trained weights.

Owns: nothing but the order in which its parts are read: `options.py`, `stage.py` (chain, data,
run), `player.py` (one child process; `cheats.py`: one that lies), `show.py` (the performance),
`trial.py` (what became of the cheat), `summary.py` (what it proved).
Never: a rule of the protocol, or client code of its own; the honest run what `troth join` runs.
"""
