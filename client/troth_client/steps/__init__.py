"""The steps of a round, one function each; `troth_client.round` calls them in order.

Owns: each step. Never: their order. Next: `plan.py`, the first step.
"""
