"""Token data sets: prepared once, named by a hash that is on chain, checked before each first use.

Owns: the manifest, the shards and their preparation. Never: imports torch, or decides which
participant trains on which sequence (`troth_coordinator.rules.assignment` does).
Read `manifest.py`, then `shards.py`, then `prepare.py`.
"""
