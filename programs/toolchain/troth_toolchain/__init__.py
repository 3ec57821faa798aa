"""Builds Solana programs (sBPF images) from packaged compilers only.

Owns: everything between a program crate and its image, IDL, layout and build information.
Never: imports anything outside the standard library, downloads a compiler, or calls rustup.
Next: `cli.py` (the commands), `image.py` (crate -> image), `ir/rules.py` (the rewrite table).
"""
