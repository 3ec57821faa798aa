"""Calibration: how far honest work differs between machines, and the judge's bounds that follow.

Owns: rounds of training without a chain, honest ways and cheats, their audits, proposed bounds.
Never: takes part in a run, or judges one: no participant's audit imports it.
Next: `calibrate.py` for the measurements, `thresholds.py` for the bounds.
"""
