"""Checkpoints: the weights of a round in files, fetched from others and shown to others.

Owns: folders with safetensors shards, the fetch piece by piece, and what is shown. Never: decides
which root is right; a `CommittedState` of the chain does.
Next: `folder.py` for the files, `fetch.py` for the way here, `state_store.py` for the way out.
"""
