"""Files of results, a line of JSON each: they outlive a kill, and several processes share them.

Owns: reading and appending. A process that was killed may leave half a line, which is no result.
Never: changes what is in a file: another process may be writing to it.
Next: `training.py` and `whole_runs.py`, which keep finished runs this way.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the whole lines; a missing file has none."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue  # half a line, cut anywhere, or zeros of a lost block: no JSON in UTF-8


def append_line(path: Path, values: Mapping[str, object]) -> None:
    """Append a line in one write, so that lines of several processes do not mix."""
    end = b"" if _ends_whole(path) else b"\n"
    with path.open("ab") as out:
        out.write(end + json.dumps(values).encode() + b"\n")


def _ends_whole(path: Path) -> bool:
    text = path.read_bytes() if path.exists() else b""
    return not text or text.endswith(b"\n")
