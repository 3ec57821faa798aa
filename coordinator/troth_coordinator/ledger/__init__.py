"""The ledger of a run: its events in order, which anybody can hold against the chain hash.

Owns: the order of events and the hash that they give. Never: believes a file or an RPC node.
Next: `fold.py`.
"""
