"""The coordinator seen from Python: the rules of a run and the typed door to the chain.

Owns: `rules` (pure functions, equal to the program's to the bit), `chain` (accounts, RPC and
instructions), `artifacts` (the shipped image, IDL, layout), `config_files` (run configs on disk).
Never: trains, judges work, or keeps state between calls.
Next: `rules/hashing.py` for the bytes everything is built on, `rules/view.py` for what is seen.
"""
