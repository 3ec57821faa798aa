"""Every simulated cheat by name.

Owns: names and stories. Never: the work of a cheat; `work.py`, `tiles.py`, `signed.py`,
`votes.py` have it.
Next: docs/threat-model.md, which names the defence against each.
"""

from typing import Final

from troth_coordinator.rules.config import JudgeSection
from troth_simulation.cheats import signed, tiles, votes, work
from troth_simulation.cheats.cheat import ONCE, Cheat, Hidden

NOBODY: Final = "none"
"""The name for a run in which nobody cheats."""
FREE_RIDER: Final = Cheat(
    "free-rider",
    "computes nothing and sends its decayed residual",
    computes=False,
)
_PARTS: Final = ((7, 8), (3, 4), (1, 2), (1, 4), (1, 8))

_PARTIAL: Final = (
    *(
        Cheat(
            f"batch-{some}-{all_}",
            f"trains on {some}/{all_} of each sequence and claims the whole batch",
            batch=work.part_of_each(some, all_),
        )
        for some, all_ in _PARTS
    ),
    *(
        Cheat(
            f"sequences-{some}-{all_}",
            f"trains on {some}/{all_} of the sequences and claims the whole batch",
            batch=work.part_of_batch(some, all_),
        )
        for some, all_ in _PARTS
    ),
    Cheat(
        "last-layers",
        "stops the backward pass half-way and sends nothing for the first layers",
        gradient=work.of_last_layers,
    ),
)

_OTHER_WORK: Final = (
    Cheat(
        "wrong-data",
        "trains on text of its own choosing instead of the assigned sequences",
        batch=work.backwards,
    ),
    Cheat(
        "stale-model",
        "computes its gradient on the weights of three rounds before",
        stale_rounds=3,
    ),
    Cheat(
        "copies",
        "computes nothing and sends the payload that somebody else sent in the round before",
        computes=False,
        copies=True,
    ),
)

_POISON: Final = (
    Cheat(
        "sign-flip",
        "sends the gradient negated, which pushes everybody's loss up",
        gradient=work.negated,
    ),
    Cheat(
        "poison",
        "bends every value of its gradient by half of itself towards weights of its own choice",
        gradient=work.bent(0.5),
    ),
    Cheat(
        "poison-within",
        "bends its gradient by less than what honest hardware may differ; nothing finds that",
        fault="",
        gradient=work.bent(0.02),
    ),
    Cheat(
        "smuggled-residual",
        "once commits to a huge residual of its own making, then is honest and lets it work",
        period=ONCE,
        residual=signed.smuggling,
    ),
    Cheat(
        "nan-residual",
        "commits to NaN, so that no comparison with a bound ever holds",
        residual=signed.with_nan,
    ),
    Cheat(
        "infinite-residual",
        "commits to infinities, which make every difference look small",
        residual=signed.with_infinity,
    ),
)

_TILES: Final = (
    Cheat(
        "absent-half",
        "computes half of its tiles and claims that the others have no gradient",
        tiles=tiles.half_absent,
    ),
    Cheat(
        "plants-a-16th",
        "sends what it likes in two 32nds of the model, and computes the rest",
        tiles=tiles.planted(2),
    ),
    Cheat(
        "plants-an-8th",
        "sends what it likes in four 32nds of the model, and computes the rest",
        tiles=tiles.planted(4),
    ),
    Cheat(
        "smuggles-in-turn",
        "fills the residual of two 32nds of the model, in each round two others out of twelve",
        tiles=tiles.smuggled_in_turn,
    ),
    Cheat(
        "smallest-tiles",
        "forges the tenth of the tiles that has the smallest gradients",
        tiles=tiles.smallest_forged(0.1),
    ),
    Cheat(
        "below-the-floor",
        "forges only tiles whose gradient is far below the judge's floor; nothing finds that",
        fault="",
        tiles=tiles.forged_below_floor,
    ),
    Cheat(
        "touches-idle-tiles",
        "moves tiles without gradient a little, so that their old residual votes again",
        tiles=tiles.touched,
    ),
    Cheat(
        "knife-edge",
        "stands just inside every bound, so that seats and jury might contradict each other",
        fault="",
        tiles=tiles.at_the_edge(JudgeSection()),
    ),
)

_OPENINGS: Final = (
    Cheat(
        "openings-of-another-round",
        "computes nothing and opens another round than the sampled one",
        fault="P5",
        computes=False,
        openings=signed.of_another_round,
    ),
    Cheat(
        "openings-of-another-run",
        "computes nothing and replays openings of another run",
        fault="P5",
        computes=False,
        openings=signed.of_another_run,
    ),
    Cheat(
        "wrong-path",
        "computes nothing and opens tiles that are not under the signed root",
        fault="P5",
        computes=False,
        openings=signed.with_a_wrong_path,
    ),
    Cheat(
        "swapped-tiles",
        "computes nothing and opens the tiles of two rounds in each other's place",
        fault="P5",
        computes=False,
        openings=signed.with_swapped_tiles,
    ),
    Cheat(
        "truncated-openings",
        "computes nothing and leaves out the end of what it opens",
        fault="P5",
        computes=False,
        openings=signed.truncated,
    ),
    Cheat(
        "junk-root",
        "computes nothing, posts the root of bytes that open nothing, and pushes those",
        fault="P5",
        computes=False,
        openings=signed.zeros,
    ),
    Cheat(
        "deletes-residuals",
        "computes nothing and deletes what an audit would ask for",
        fault="P5",
        computes=False,
        hides=Hidden.RESIDUALS,
    ),
    Cheat(
        "hides-when-forged",
        "computes nothing for every third payload, and posts no openings when that one is sampled",
        fault="P5",
        computes=False,
        period=3,
        hides=Hidden.RESIDUALS,
    ),
    Cheat(
        "hides-openings",
        "computes nothing, posts the root of its openings and serves them to nobody",
        fault="P5",
        computes=False,
        hides=Hidden.OPENINGS,
    ),
    Cheat(
        "serves-jurors-only",
        "computes nothing and serves its openings to jurors, but not to the seats before them",
        computes=False,
        hides=Hidden.UNTIL_JURY,
    ),
    Cheat(
        "starves-seats",
        "works honestly and serves its openings to jurors only; it costs the seats their fee",
        fault="",
        hides=Hidden.UNTIL_JURY,
    ),
    Cheat(
        "hides-payloads",
        "commits and never serves what it committed to",
        fault="P4",
        computes=False,
        hides=Hidden.PAYLOADS,
    ),
)

_VOTES: Final = (
    Cheat(
        "mismatch-juror",
        "works honestly, and says mismatch on every jury about work, where one is drawn",
        fault="",
        vote=votes.mismatch,
    ),
)

CHEATS: Final[dict[str, Cheat]] = {
    cheat.name: cheat
    for cheat in (FREE_RIDER, *_PARTIAL, *_OTHER_WORK, *_POISON, *_TILES, *_OPENINGS, *_VOTES)
}
