"""Forward and backward: what a trainer computes on its own sequences, and the validation loss.

Owns: one gradient and one loss, as functions of weights and tokens. Never: changes a weight, keeps
state, or knows of rounds. Read `step.py`, then `evaluate.py`.
"""
