"""Headers of a ledger against each other: what was taken back hides no residual."""

from dataclasses import replace
from typing import Any

from solders.pubkey import Pubkey
from support.headers import HEADER, key

from troth_attestation.header import Header
from troth_attestation.state import zero_residual_root
from troth_audit.replay.auditor import Replay
from troth_audit.replay.evidence import Claim, Evidence
from troth_audit.replay.ports import Terms
from troth_audit.replay.replayed import Replayed
from troth_audit.replay.submissions import KEPT_RESIDUALS, Committed, Submissions
from troth_audit.replay.told import Told
from troth_coordinator.chain.event_types_rounds import PayloadStruck
from troth_coordinator.rules.config import RunConfig
from troth_coordinator.rules.ids import NONE

INDEX = 6
FIRST = 100
CONFIG = RunConfig().with_manifest(key(16))
TERMS = Terms(key(2), key(3), key(1), CONFIG, 10, num_tiles=4, payload_bytes=2_048)
NOTHING: Any = None


def header(round_: int, previous: int, before: bytes, after: bytes) -> Header:
    residuals: dict[str, Any] = {"residual_before": before, "residual_after": after}
    return replace(HEADER, round=round_, previous_included=previous, **residuals)


def wrong(submissions: Submissions, shown: Header, previous: int) -> list[str]:
    """Return what is wrong with the residual of an included header; other fields do not count."""
    claim = Claim(shown.round, 0, 1 << INDEX, INDEX, b"", is_included=True, vouchers={})
    keys = HEADER.owner, HEADER.session
    committed = Committed(claim, HEADER.epoch, *keys, previous, b"", HEADER.state_root)
    found = submissions.check(committed, Evidence(claim, shown))
    return [one.expected for one in found if one.expected.startswith("residual_before")]


def struck(round_: int) -> PayloadStruck:
    return PayloadStruck(
        run=Pubkey.default(),
        slot=0,
        body=b"",
        round=round_,
        target=INDEX,
        open_round=round_ + 1,
        included=0,
        reward_undone=0,
        vouchers=0,
        jailed=0,
    )


def test_a_residual_is_known_although_more_payloads_were_struck_since_than_are_remembered():
    """The liar withholds its payloads until nobody remembers what it has to carry on."""
    submissions = Submissions(TERMS)
    replay = Replay(NOTHING, submissions, Replayed(NOTHING), NOTHING, range(1), num_ahead=0)
    zero = zero_residual_root(TERMS.num_tiles)
    assert wrong(submissions, header(FIRST, NONE, zero, key(20)), NONE) == []
    for round_ in range(FIRST + 1, FIRST + 2 + KEPT_RESIDUALS):
        assert wrong(submissions, header(round_, FIRST, key(20), key(30)), FIRST) == []
        assert list(replay.take(Told(1), struck(round_))) == []
    last = FIRST + 2 + KEPT_RESIDUALS
    assert wrong(submissions, header(last, FIRST, key(31), key(32)), FIRST) != []
