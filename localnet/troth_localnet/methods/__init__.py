"""The JSON-RPC methods, a module per subject.

Owns: the methods. Never: sockets. Next: `registry.py`, which lists them all.
"""
