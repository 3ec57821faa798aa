"""The state of a participant on disk: each file is written whole or not at all.

Owns: one folder per participant and run. Never: talks to the chain or decides what to keep.
Next: `entries.py` for the records, `store.py` for the folder, `sealed.py` for the bytes of a file.
"""

from troth_client.storage.entries import ResidualEntry, StoreIdentity, Submission, WeightState
from troth_client.storage.store import Store, report_damage

__all__ = [
    "ResidualEntry",
    "Store",
    "StoreIdentity",
    "Submission",
    "WeightState",
    "report_damage",
]
