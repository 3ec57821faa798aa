"""The chain and the other participants, as one participant reads them.

Owns: the views of the chain, and the check of every submission before its use.
Never: a step of a round. Next: `chain.py`, `watch.py`, `submissions.py`.
"""
