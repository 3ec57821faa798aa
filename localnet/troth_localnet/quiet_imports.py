"""Imported first by the fork server: the modules after it are imported without garbage collection.

Modules are never garbage. Looking for it while PyTorch and the client are imported takes a tenth of
the time, on the one core that everybody waits for. Every process that is forked collects again.
Next: `fleet.py`, which preloads it.
"""

import gc
import os

gc.disable()
os.register_at_fork(after_in_child=gc.enable)
