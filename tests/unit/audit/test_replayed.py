"""The order in which a replay applies, takes back, loses and takes up weights."""

from collections.abc import Iterable, Sequence

from support.fields import assert_fields

from troth_audit.replay.findings import Finding, Grade, Rule, missing
from troth_audit.replay.replayed import Replayed, State, Waiting
from troth_coordinator.chain.event_types_rounds import CheckpointStored
from troth_coordinator.rules.hashing import H, u64


class History:
    """Weights whose root is a hash of all that was applied to them; `served` are roots to take."""

    def __init__(self, served: dict[bytes, tuple[str, ...]] | None = None) -> None:
        self.round, self.cursor = 0, 0
        self.applied: tuple[str, ...] = ()
        self.kept: tuple[str, ...] | None = None
        self.kept_root = b""
        self.served = served or {}

    def decode(self, payload: bytes, root: bytes) -> str:
        return payload.decode()

    def apply(self, num_trainers: int, payloads: Sequence[str | None]) -> None:
        self.applied += tuple(one for one in payloads if one is not None)
        self.round, self.cursor = self.round + 1, self.cursor + num_trainers

    def root(self) -> bytes:
        return root_of(self.round, self.applied)

    def remember(self) -> None:
        self.kept, self.kept_root = self.applied, self.root()

    def recall(self, round_: int, cursor: int, root: bytes) -> bool:
        if self.kept is None or self.kept_root != root:
            return False
        self.applied, self.round, self.cursor = self.kept, round_, cursor
        return True

    def take_up(self, round_: int, cursor: int, root: bytes) -> bool:
        found = () if round_ == 0 else self.served.get(root)
        if found is None:
            return False
        self.applied, self.round, self.cursor = found, round_, cursor
        return True


def root_of(round_: int, applied: Sequence[str]) -> bytes:
    return H("troth:test", u64(round_), *(one.encode() for one in applied))


def state(round_: int, *applied: str) -> State:
    return State(round_, 2 * round_, root_of(round_, applied))


def begun(weights: History, **options: int) -> Replayed[str]:
    replayed = Replayed(weights, **options)
    assert list(replayed.begin(root_of(0, ()))) == []
    return replayed


def waiting(round_: int, *payloads: str | None) -> Waiting[str]:
    """A round that waits; None stands for a payload that nobody has."""
    found = Waiting(round_, 2, {at: one for at, one in enumerate(payloads) if one is not None})
    for at, one in enumerate(payloads):
        if one is None:
            found.payloads[at] = None
            found.absent.add(at)
            found.lacking[at] = [missing(Rule.PAYLOAD, f"payload {at}", round_, at)]
    return found


def grades(found: Iterable[Finding]) -> list[Grade]:
    return [one.grade for one in found]


def stored(round_: int, *applied: str) -> CheckpointStored:
    return CheckpointStored(
        run=None,
        slot=0,
        body=b"",
        round=round_,
        cursor=2 * round_,
        epoch=0,
        root=root_of(round_, applied),
        created=True,
    )


def test_a_payload_that_is_struck_before_the_next_root_was_never_applied():
    replayed = begun(History())
    assert list(replayed.close(state(0))) == []
    replayed.wait(waiting(0, "a", "b"))
    assert list(replayed.strike(0, 1)) == []
    replayed.wait(waiting(1))  # the forced void round
    assert list(replayed.close(state(2, "a"))) == []


def test_two_payloads_of_one_round_can_be_struck_over_two_void_rounds():
    replayed = begun(History())
    replayed.wait(waiting(0, "a", "b", "c"))
    for target in (1, 2):
        assert list(replayed.strike(0, target)) == []
        replayed.wait(waiting(target))
    assert list(replayed.close(state(3, "a"))) == []


def test_a_payload_that_nobody_has_is_a_note_once_it_is_struck():
    """Nobody ends the comparison of roots by withholding a payload."""
    replayed = begun(History())
    replayed.wait(waiting(0, "a", None))
    replayed.wait(waiting(1))
    (found,) = replayed.strike(0, 1)
    assert_fields(found, grade=Grade.NOTE, rule=Rule.PAYLOAD, participant=1)
    replayed.wait(waiting(2))
    assert list(replayed.close(state(3, "a"))) == []
    assert_fields(replayed, is_lost=False, num_applied=3)


def test_what_is_struck_while_the_weights_are_unknown_is_a_note_too():
    replayed = begun(History())
    replayed.wait(waiting(0, None))
    assert grades(replayed.close(state(1, "x"))) == [Grade.MISSING]
    replayed.wait(waiting(1, "a", None))
    replayed.wait(waiting(2))
    assert grades(replayed.strike(1, 1)) == [Grade.NOTE]
    assert list(replayed.close(state(3, "x", "a"))) == []


def test_what_a_restart_takes_back_need_not_be_had():
    replayed = begun(History())
    replayed.wait(waiting(0, "a"))
    assert list(replayed.close(state(1, "a"))) == []
    assert list(replayed.checkpoint(stored(1, "a"))) == []
    replayed.wait(waiting(1, None))
    replayed.wait(waiting(2))
    assert grades(replayed.restart(3, 6)) == [Grade.NOTE]
    assert list(replayed.close(state(3, "a"))) == []


def test_a_signature_that_nobody_has_is_missing_once_its_payload_is_applied():
    """Its bytes are there, so the roots are compared; a strike makes a note of it, too."""
    for is_struck in (False, True):
        replayed = begun(History())
        there = waiting(0, "a", "b")
        there.lacking[1] = [missing(Rule.SIGNATURE, "a true one", 0, 1)]
        replayed.wait(there)
        struck = grades(replayed.strike(0, 1)) if is_struck else []
        left = grades(replayed.close(state(1, *("a" if is_struck else "ab"))))
        assert struck == [Grade.NOTE] * is_struck
        assert left == [Grade.MISSING] * (not is_struck)
        assert not replayed.is_lost


def test_what_the_last_rounds_of_a_ledger_lack_is_missing():
    replayed = begun(History())
    assert list(replayed.close(state(0))) == []
    replayed.wait(waiting(0, "a", None))
    assert grades(replayed.end_of_ledger()) == [Grade.MISSING]


def test_another_root_is_named_once_and_the_replay_goes_on_at_a_root_that_is_served():
    served = {root_of(2, ("x", "y")): ("x", "y")}
    replayed = begun(History(served))
    replayed.wait(waiting(0, "a"))
    (found,) = replayed.close(state(1, "x"))
    assert found.grade is Grade.DISCREPANCY
    assert found.rule is Rule.STATE_ROOT
    assert found.round == 1
    replayed.wait(waiting(1, "y"))
    assert list(replayed.close(state(2, "x", "y"))) == []
    replayed_checkpoint = list(replayed.checkpoint(stored(2, "x", "y")))
    assert replayed_checkpoint == []
    replayed.wait(waiting(2, "z"))
    assert list(replayed.close(state(3, "x", "y", "z"))) == []
    assert not replayed.is_lost


def test_the_round_of_a_taken_checkpoint_is_applied_after_it():
    """The weights come under the root before the round; its own payloads follow."""
    served = {root_of(1, ("x",)): ("x",)}
    replayed = begun(History(served))
    replayed.wait(waiting(0, "a", None))
    (lacked,) = replayed.close(state(1, "x"))
    assert_fields(lacked, grade=Grade.MISSING, expected="payload 1")
    assert replayed.is_lost
    replayed.wait(waiting(1, "y"))
    assert list(replayed.checkpoint(stored(1, "x"))) == []
    assert list(replayed.close(state(2, "x", "y"))) == []
    assert not replayed.is_lost


def test_a_restart_takes_the_stored_weights_and_drops_what_waited():
    replayed = begun(History())
    replayed.wait(waiting(0, "a"))
    assert list(replayed.close(state(1, "a"))) == []
    assert list(replayed.checkpoint(stored(1, "a"))) == []
    replayed.wait(waiting(1, "b"))
    for void in (2, 3, 4):
        replayed.wait(waiting(void))
    assert list(replayed.restart(5, 10)) == []
    assert list(replayed.close(state(5, "a"))) == []


def test_a_restart_before_any_checkpoint_takes_the_first_weights():
    replayed = begun(History())
    for void in (0, 1, 2):
        replayed.wait(waiting(void))
    assert list(replayed.restart(3, 6)) == []
    assert list(replayed.close(state(3))) == []


def lost_before_a_stored_root(weights: History) -> Replayed[str]:
    """A replay that kept the first weights, lost its own, and then saw a root of round 2 stored."""
    replayed = begun(weights)
    replayed.wait(waiting(0, "a"))
    replayed.wait(waiting(1, None))
    assert grades(replayed.close(state(2, "a", "b"))) == [Grade.MISSING]
    assert list(replayed.checkpoint(stored(2, "a", "b"))) == []
    assert replayed.is_lost
    return replayed


def test_a_restart_does_not_take_an_older_copy_for_the_stored_weights():
    """The ledger is honest and a payload is missing: an older copy would accuse the chain."""
    replayed = lost_before_a_stored_root(History())
    (found,) = replayed.restart(5, 10)
    assert found.grade is Grade.MISSING
    assert found.rule is Rule.STATE_ROOT
    assert list(replayed.close(state(5, "a", "b"))) == []
    assert replayed.is_lost


def test_a_restart_takes_the_stored_weights_from_elsewhere_where_the_copy_is_older():
    weights = History()
    replayed = lost_before_a_stored_root(weights)
    weights.served[root_of(2, ("a", "b"))] = ("a", "b")
    assert list(replayed.restart(5, 10)) == []
    assert list(replayed.close(state(5, "a", "b"))) == []
    assert not replayed.is_lost


def test_a_checkpoint_of_another_root_is_named():
    replayed = begun(History())
    (found,) = replayed.checkpoint(stored(0, "x"))
    assert found.rule is Rule.CHECKPOINT


def test_nothing_is_replayed_before_the_start_and_beyond_the_end():
    served = {root_of(2, ("x", "y")): ("x", "y")}
    replayed = begun(History(served), start=2, end=3)
    assert list(replayed.close(state(0))) == []
    assert list(replayed.close(state(2, "x", "y"))) == []
    replayed.wait(waiting(2, "z"))
    assert list(replayed.close(state(3, "x", "y", "z"))) == []
    replayed.wait(waiting(3))
    assert list(replayed.close(state(4, "wrong"))) == []
    assert replayed.num_roots == 2


def test_a_start_that_nobody_has_is_missing():
    replayed = begun(History(), start=2)
    (found,) = replayed.close(state(2, "x"))
    assert found.grade is Grade.MISSING
    assert found.rule is Rule.STATE_ROOT


def test_a_start_that_closed_void_is_missing_once_and_before_a_point_is_kept():
    """A later process goes on from a later root: the finding must be there by then."""
    served = {root_of(3, ("x", "y")): ("x", "y")}
    replayed = begun(History(served), start=2, first=2)
    assert list(replayed.close(state(1, "x"))) == []
    (found,) = replayed.close(state(3, "x", "y"))
    assert_fields(found, grade=Grade.MISSING, rule=Rule.STATE_ROOT, round=2)
    assert list(replayed.checkpoint(stored(3, "x", "y"))) == []
    assert not replayed.is_lost
    assert list(replayed.close(state(4, "x", "y"))) != []
    assert list(replayed.end_of_ledger()) == []


def test_a_start_that_the_ledger_does_not_come_to_is_missing_once():
    replayed = begun(History(), start=2, first=3)
    assert list(replayed.close(state(1, "x"))) == []
    (found,) = replayed.end_of_ledger()
    assert_fields(found, grade=Grade.MISSING, rule=Rule.STATE_ROOT, round=3)


def test_the_last_rounds_are_compared_although_the_next_one_closed_void():
    replayed = begun(History(), end=2)
    replayed.wait(waiting(0, "a"))
    assert list(replayed.close(state(1, "a"))) == []
    replayed.wait(waiting(1, "b"))
    replayed.wait(waiting(2))
    (found,) = replayed.close(state(3, "a", "other"))
    assert_fields(found, grade=Grade.DISCREPANCY, rule=Rule.STATE_ROOT, round=3)


def test_nothing_more_is_compared_once_the_last_rounds_were():
    replayed = begun(History(), end=1)
    replayed.wait(waiting(0, "a"))
    replayed.wait(waiting(1))
    assert list(replayed.close(state(2, "a"))) == []
    replayed.wait(waiting(2))
    assert list(replayed.close(state(3, "wrong"))) == []
    assert replayed.is_lost
