"""Payload bytes: lengths, packing, the checks before use (protocol sections 5.3 and 5.4).

Owns: the wire format of one trainer's votes. Never: tensors larger than the format's limits, the
network, or the meaning of a vote (`demo`).
Next: `limits.py`, then `codec.py`; `debug.py` serves people who write another client.
"""
