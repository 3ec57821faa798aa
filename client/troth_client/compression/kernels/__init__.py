"""Compiled kernels for processors (numba) and GPUs (Triton): encode and apply, a pass per tile.

On a GPU also the hashes of leaves. Owns: what they compile, and the choice between them and torch.
Apply has the bits of torch. So has encode for the same D(g), which may differ in its last bits
(`base.MAX_ERROR`).
Never: a rule of its own. `dct.py`, `residual.py`, `topk.py`, `apply.py` and `exact.py` one folder
up say what is right; they are the reference, and the way where no compiler is there.
Next: `choice.py`, the one seam; `encode.py` and `apply.py`; `panel.py` for the inner product.
"""
