"""Faults for whole runs of real processes, and one report of what they cost.

Owns: proxies with faults, schedules, the soak and its report. Never: a promise about a run of its
own making: the caller starts chain, run and participants.
Next: `soak.py` for the order of things; `scripts/bench/soak.py` starts it.
"""
