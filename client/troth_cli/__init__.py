"""The command line: parses settings, wires the ports, prints.

Owns: commands, workflows, views and the demo. Never: holds a rule of the protocol.
Next: `main.py`, `app.py`, then `commands/`.
"""
