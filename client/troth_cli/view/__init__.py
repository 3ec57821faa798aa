"""Values as people and scripts read them: amounts, tables, JSON.

Owns: the printed form of each record. Never: reads the chain. Next: `output.py`, `status.py`.
"""
