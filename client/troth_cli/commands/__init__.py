"""The commands, one module per group: options as a dataclass, then what to do with them.

Owns: names, help texts and what is printed. Never: imports anything slow at the top, or decides
what the program decides. Next: `../app.py` puts the groups together.
"""
