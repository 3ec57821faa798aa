"""The progress of a cheat: which of its payloads are dishonest, and what it hides for how long."""

import pytest

from troth_attestation.openings import Sampled
from troth_coordinator.rules.ids import (
    ZERO_DIGEST,
    Address,
    Digest,
    ParticipantIndex,
    RoundIndex,
)
from troth_simulation.cheats.catalogue import CHEATS
from troth_simulation.cheats.conduct import Conduct

ROOT, EARLIER = Digest(b"\7" * 32), Digest(b"\1" * 32)
TARGET = 4
JURY = "CASE_COMMIT"


def conduct_of(kind: str, told: list[int] | None = None) -> Conduct:
    def emit(_event: str, **fields: int) -> None:
        if told is not None:
            told.append(fields["round"])

    return Conduct(CHEATS[kind], emit)


def sampled(round_: int) -> Sampled:
    index, before = ParticipantIndex(TARGET), RoundIndex(round_ - 1)
    run = Address(bytes(32))
    return Sampled(run, RoundIndex(round_), index, before, 4, (0, 3), ZERO_DIGEST, ZERO_DIGEST)


@pytest.mark.parametrize(
    ("kind", "dishonest"),
    [
        ("free-rider", [3, 4, 5, 6, 7, 8, 9]),
        ("hides-when-forged", [3, 6, 9]),
        ("smuggled-residual", [3]),
    ],
)
def test_payloads_are_dishonest_in_their_period_after_three_honest_ones(kind, dishonest):
    told: list[int] = []
    conduct = conduct_of(kind, told)
    for round_ in range(10):
        conduct.note(round_)
        conduct.follow("round_closed", {"own": True})
    assert [round_ for round_ in range(10) if conduct.has_cheated(round_)] == dishonest
    assert told == [3], "it is told once"


def test_a_payload_that_was_not_included_is_forged_again():
    conduct = conduct_of("hides-when-forged")
    for _ in range(3):
        conduct.follow("round_closed", {"own": True})
    for _ in range(2):
        assert conduct.begin()
        conduct.follow("round_closed", {"own": False})


@pytest.mark.parametrize(
    ("kind", "is_hidden_from_jurors"),
    [("hides-openings", True), ("serves-jurors-only", False), ("starves-seats", False)],
)
def test_openings_are_hidden_from_the_seats_of_one_audit(kind, is_hidden_from_jurors):
    conduct = conduct_of(kind)
    for _ in range(3):
        conduct.follow("round_closed", {"own": True})
    conduct.note(3)
    conduct.post(sampled(2), EARLIER)
    assert not conduct.is_unseen(EARLIER), "an honest round"
    conduct.post(sampled(3), ROOT)
    for round_, target, stage in ((3, TARGET, "COMMIT"), (2, TARGET, JURY), (3, 1, JURY)):
        conduct.follow("audit_changed", {"round": round_, "target": target, "stage": stage})
        assert conduct.is_unseen(ROOT)
    conduct.follow("audit_changed", {"round": 3, "target": TARGET, "stage": JURY})
    assert conduct.is_unseen(ROOT) == is_hidden_from_jurors
