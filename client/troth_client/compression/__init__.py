"""DeMo on tiles: cut, transform, select, keep the rest, apply bit-exactly (protocol section 5).

Owns: tile layout, DCT, canonical top-k, payload bytes, residual, the exact weight step and its
self-test.
Never: sockets, the chain, or which payloads are included.
Next: read `tiles.py`, `dct.py`, `topk.py`, `codec.py`, `residual.py`, `apply.py` in this order.
"""
