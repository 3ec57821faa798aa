"""Drivers of the program on an embedded chain, without clients. Begin with rounds.py."""
