"""DeMo on tiles: cut, transform, choose, remember, and apply to the bit (protocol section 5).

Owns: tile layout, DCT, canonical top-k, residual, the exact weight step and its self-test.
Never: bytes on the wire (`payload`), sockets, the chain, or who is included.
Next: read `tiles.py`, `dct.py`, `topk.py`, `residual.py`, `apply.py` in this order.
"""
