"""Rewrites LLVM IR text into what the BPF back end and the sBPF machine can carry.

Next: `rules.py` (the table), `module.py` (applies it), `text.py` (reads IR lines).
"""
