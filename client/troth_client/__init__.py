"""The participant: data, model, DeMo, payloads, transport, roles, command line.

Owns: everything that needs a GPU or a socket. Never: decides who is included or slashed; the chain
does. Next: `round.py`, the twelve steps of a round.
"""
