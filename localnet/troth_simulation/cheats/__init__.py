"""Participants that cheat, by name: what `troth demo --cheat` offers and the adversarial tests run.

Owns: the catalogue. Never: imports the client; it turns a cheat into doors of a participant
(`troth_simulation.cheats.ports`).
Next: `work.py` for cheats about the gradient, `catalogue.py` for the list.
"""
