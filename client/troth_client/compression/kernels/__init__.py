"""Compiled kernels for the processor: encode and apply in one pass per tile, same bits as torch.

Owns: what numba compiles, and the choice between it and torch.
Never: a rule of its own. `dct.py`, `residual.py`, `topk.py`, `apply.py` and `exact.py` one folder
up say what is right; they are the reference, and the way where numba is missing.
Next: `choice.py`, the one seam; `encode.py` and `apply.py`; `panel.py` for the inner product.
"""
