"""The place of a process among the ranks of one participant.

Owns: the record. Never: reads the environment (the command line does) or imports torch.
Next: `ranks.py`, which connects them.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Place:
    """The launcher's words: which rank this is, of how many, and where they find each other.

    `local` is the number on this machine, which picks a GPU. `host` and `port` are those of the
    store; rank 0 hosts it unless `launcher_hosts`. `attempt` keeps an earlier start apart.
    Ranks that rank 0 starts itself need no store: it tells them the `folder` in which they meet.
    """

    rank: int
    size: int
    local: int
    host: str = ""
    port: int = 0
    launcher_hosts: bool = False
    attempt: str = "0"
    folder: Path | None = None
