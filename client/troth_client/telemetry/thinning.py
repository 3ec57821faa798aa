"""Long series in bounded memory: the newest half whole, the older half in ever larger steps.

Owns: the rule. Never: keeps anything. Next: `own_board.py`; `troth_cli/observe/round_book.py`.
"""

from collections.abc import Sequence


def superfluous(keys: Sequence[int], most: int) -> Sequence[int]:
    """Return the keys to drop from an ascending series that has become longer than `most`.

    Every other one of the older half goes; the first one stays.
    """
    return keys[: len(keys) // 2][1::2] if len(keys) > most else ()
