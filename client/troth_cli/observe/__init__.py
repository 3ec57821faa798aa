"""A run as an outsider can know it: from the chain, and from the headers that members serve.

Owns: one frozen record, `Observation`, and the `Observer` that keeps it up to date.
Never: imports torch, has a key, sends a transaction, or serves anything.
Next: `record.py` for the record, `observer.py` for its use.
"""
