"""Numbers for the golden vectors that are the same on every Python version and machine.

Owns: a counter-mode SHA-256 stream. Next: vectors.py.
"""

import hashlib


class Stream:
    """Draws from SHA-256(name, counter)."""

    def __init__(self, name: str) -> None:
        self._name = name.encode()
        self._counter = 0

    def bytes(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        out = b""
        while len(out) < size:
            counter = self._counter.to_bytes(8, "little")
            out += hashlib.sha256(self._name + b"/" + counter).digest()
            self._counter += 1
        return out[:size]

    def bits(self, width: int) -> int:
        """Return a number below 2^width."""
        return int.from_bytes(self.bytes(16), "little") % 2**width

    def below(self, limit: int) -> int:
        """Return a number below the limit."""
        return int.from_bytes(self.bytes(16), "little") % limit
