"""Remembers whether garbage was collected in the process that imported this, at that moment."""

import gc

COLLECTED_GARBAGE = gc.isenabled()
