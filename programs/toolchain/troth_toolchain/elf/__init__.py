"""Reads llc's relocatable object and writes loadable sBPF images.

Next: `object.py` (reader), `program.py` (flat program), `image_v0.py` and `image_v3.py` (writers),
`opcodes.py` (the last check).
"""
