"""Events of the client: JSON lines, and the display that reads nothing else.

Owns: the log and its display. Never: feeds anything back into the protocol.
Next: `events.py`, then `board.py`, `display.py`.
"""
