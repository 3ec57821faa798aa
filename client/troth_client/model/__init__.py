"""The model that a run trains: architecture, first weights, files that `transformers` loads.

Owns: shapes, names and arithmetic of a Llama-family decoder. Never: trains it (`train/`), or
compresses and applies updates (`compression/`).
Next: read `llama.py`, then `shapes.py`, `weights.py`, `init.py`, `export.py`, `device.py`.
"""
