"""Four ways to train one model together, measured on the same workload: bytes, seconds, loss.

Owns: DDP, FSDP, DiLoCo and DeMo on torch.distributed, one process a rank, counted bytes.
Never: a chain, a stake or a signature: these are the bytes of methods, not of the protocol.
Next: read `records.py`, `workload.py`, the methods, `rank.py`, `cell.py`, `study.py` in this order.
"""
