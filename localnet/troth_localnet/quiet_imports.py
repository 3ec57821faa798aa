"""Imported first by the fork server: garbage collection passes over what it imports.

Modules are never garbage. Looking for it while PyTorch and the client are imported takes a tenth of
the time, on the one core that everybody waits for. A forked process collects again, but not what it
was born with: to look there would copy the memory that all of them share.
Next: `fleet.py`, which preloads it.
"""

import gc
import os


def _collect_own() -> None:
    gc.freeze()
    gc.enable()


gc.disable()
os.register_at_fork(after_in_child=_collect_own)
