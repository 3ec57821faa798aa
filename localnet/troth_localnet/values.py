"""JSON values as a type.

Owns: the type; it is read-only, so nested literals check without casts. Never: encodes.
Next: `jsonrpc.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
