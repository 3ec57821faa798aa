"""One function per instruction of the program, generated from its IDL.

Owns: the four modules that scripts/gen/instructions.py writes.
Never: anything written by hand.
Next: ../instructions.py, ../audit_instructions.py and ../case_instructions.py: what callers import.
"""
