"""What a participant must not forget: written before it is needed, whole or not at all.

Owns: one folder per participant and run. Never: talks to the chain or decides what to keep.
Read `entries.py` (what is kept), then `store.py` (how).
"""

from troth_client.storage.entries import Identity, ResidualEntry, Submission, WeightState
from troth_client.storage.store import Store

__all__ = ["Identity", "ResidualEntry", "Store", "Submission", "WeightState"]
