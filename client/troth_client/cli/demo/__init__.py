"""`troth demo`: a whole network on this machine, from the chain to the trained weights.

Owns: nothing but the order in which its parts are read: `options.py`, `stage.py` (chain, data,
run), `trainer.py` (one child process), `show.py` (the performance), `summary.py` (what it proved).
Never: a rule of the protocol, or client code of its own; the trainers run what `troth join` runs.
"""
