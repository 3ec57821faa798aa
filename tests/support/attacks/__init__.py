"""Attackers among real clients, and what every attack on a whole run ends with."""
