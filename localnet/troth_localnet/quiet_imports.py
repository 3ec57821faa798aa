"""Imported first by the fork server: the modules after it are imported without garbage collection.

Modules are never garbage. Looking for it while PyTorch and the client are imported takes a sixth of
the time, on the one core that everybody waits for. `fleet.py` turns the collector on in each child.
"""

import gc

gc.disable()
