"""The judge: signed headers, Merkle roots, state roots, proofs of possession.

Owns: every check of other people's bytes that needs no GPU and no network.
Never: imports torch, opens a file or a socket, or holds a key longer than one call.
Next: `merkle.py` (roots and paths), `header.py` (what a trainer signs), `state.py` (what w_r is).
"""
