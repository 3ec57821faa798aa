"""The scope of a rule: all that it may know and add while it rewrites one function.

Next: `rules.py`.
"""

from dataclasses import dataclass, field


@dataclass
class Scope:
    """Fresh names, lines for the entry block, and the helpers that the function calls."""

    entry: list[str] = field(default_factory=list)
    helpers: set[str] = field(default_factory=set)
    num_fresh: int = 0

    def fresh(self, stem: str) -> str:
        """Return a local value name that no compiler makes: `%troth.<stem>.<n>`."""
        self.num_fresh += 1
        return f"%troth.{stem}.{self.num_fresh}"

    def helper(self, name: str) -> str:
        """`@name`, remembered so that the module declares it."""
        self.helpers.add(name)
        return f"@{name}"
