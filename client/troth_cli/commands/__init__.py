"""The commands, one module per group: options as a dataclass, then the function that uses them.

Owns: names, help texts and printed results. Never: imports anything slow at the top, or repeats a
decision of the program. Next: `../app.py`, which puts the groups together.
"""
