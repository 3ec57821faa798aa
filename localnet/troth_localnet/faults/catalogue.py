"""Every simulated cheat by name.

Owns: names and stories. Never: what a cheat does; `work.py` has that.
Next: docs/threat-model.md tells what catches each, and what does not.
"""

from typing import Final

from troth_localnet.faults.work import Cheat, backwards, negated, part_of_each

FREE_RIDER: Final = Cheat(
    "free-rider",
    "computes nothing and sends its decayed residual",
    computes=False,
)
_PARTS: Final = ((7, 8), (3, 4), (1, 2), (1, 4), (1, 8))

CHEATS: Final[dict[str, Cheat]] = {
    cheat.name: cheat
    for cheat in (
        FREE_RIDER,
        *(
            Cheat(
                f"batch-{some}-{all_}",
                f"trains on {some}/{all_} of each sequence and claims the whole batch",
                batch=part_of_each(some, all_),
            )
            for some, all_ in _PARTS
        ),
        Cheat(
            "wrong-data",
            "trains on text of its own choosing instead of the assigned sequences",
            batch=backwards,
        ),
        Cheat(
            "stale-model",
            "computes its gradient on the weights of three rounds before",
            stale_rounds=3,
        ),
        Cheat(
            "sign-flip",
            "sends the gradient negated, which pushes everybody's loss up",
            gradient=negated,
        ),
    )
}
