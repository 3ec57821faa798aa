"""Participants that cheat, by name, for `troth demo --cheat` and the adversarial tests.

Owns: the catalogue, and the work and ports of a cheat. Never: changes a step of the client.
Next: `work.py` for cheats about the gradient, `catalogue.py` for the list.
"""
