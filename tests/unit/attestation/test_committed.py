"""Roots that the chain names: what they accept, and who can make one."""

from dataclasses import replace

import pytest
from support import states, views

from troth_attestation import committed
from troth_attestation.committed import CommittedState
from troth_attestation.errors import CommittedStateError, PieceListError
from troth_attestation.pieces import PieceList, StateName, list_bytes
from troth_coordinator.rules.ids import ZERO_DIGEST
from troth_coordinator.rules.view import CheckpointView, RoundFlag

STATE = states.state()
LIST = STATE.pieces.encode()
RUN = views.run_view(config_hash=STATE.config.config_hash(), root=STATE.root)


def checkpoint(**changes):
    made = CheckpointView(
        version=1,
        bump=255,
        run=views.RUN_ADDRESS,
        payer=views.key(9),
        round=20,
        cursor=2000,
        epoch=1,
        root=STATE.root,
        slot=5,
    )
    return replace(made, **changes)


def closed(**changes):
    values = {"flags": RoundFlag.CLOSED, "canonical_root": STATE.root, "round": 20, "cursor": 2000}
    return views.round_view(**values | changes)


ACCOUNTS = {
    "the run": lambda: committed.newest_state(replace(RUN, root_round=20, root_cursor=2000)),
    "its Checkpoint account": lambda: committed.checkpoint_state(RUN, checkpoint()),
    "its closed round": lambda: committed.round_state(RUN, closed()),
}


@pytest.mark.parametrize("account", ACCOUNTS)
def test_the_list_of_a_state_is_accepted_under_its_root(account):
    wanted = ACCOUNTS[account]()
    assert wanted.check_pieces(LIST, STATE.shapes) == STATE.pieces
    assert wanted.root == STATE.root
    assert wanted.run == views.RUN_ADDRESS
    assert wanted.round == 20


SHAPES = STATE.shapes
WIDE = "model.layers.0.mlp.up_proj.weight"
NARROW = "model.layers.0.mlp.down_proj.weight"
OTHERS = {
    "swapped shapes of equal size": SHAPES | {WIDE: SHAPES[NARROW], NARROW: SHAPES[WIDE]},
    "a turned tensor": SHAPES | {WIDE: SHAPES[WIDE][::-1]},
    "a flat tensor": SHAPES | {WIDE: (SHAPES[WIDE][0] * SHAPES[WIDE][1],)},
    "a renamed tensor": {
        ("lm_heae.weight" if n == "lm_head.weight" else n): s for n, s in SHAPES.items()
    },
    "a missing tensor": {n: s for n, s in SHAPES.items() if n != "model.norm.weight"},
    "a tensor too many": SHAPES | {"model.more.weight": (64,)},
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_list_for_other_tensors_is_refused(what):
    """Even one whose length fits those tensors: then it has another root."""
    shapes = OTHERS[what]
    for data in (LIST, LIST[: list_bytes(shapes)].ljust(list_bytes(shapes), b"\1")):
        with pytest.raises(PieceListError):
            STATE.committed.check_pieces(data, shapes)


@pytest.mark.parametrize(
    "other",
    [
        StateName(21, 2000, STATE.pieces.state.config_hash),
        StateName(20, 2001, STATE.pieces.state.config_hash),
        StateName(20, 2000, b"o" * 32),
    ],
    ids=["another round", "another cursor", "another config, so another run"],
)
def test_a_list_of_another_state_is_refused(other):
    """The same weights under another name have another root."""
    run = replace(RUN, root_round=other.round, root_cursor=other.cursor)
    run = replace(run, config_hash=other.config_hash)
    for wanted in (
        committed.newest_state(run),
        committed.checkpoint_state(run, checkpoint(round=other.round, cursor=other.cursor)),
    ):
        with pytest.raises(PieceListError, match=STATE.root.hex()):
            wanted.check_pieces(LIST, STATE.shapes)
        with pytest.raises(PieceListError):
            wanted.check(PieceList.decode(LIST, STATE.shapes, other))


def test_other_weights_are_refused():
    with pytest.raises(PieceListError, match="pieces of round 20"):
        STATE.committed.check(states.state(seed=1).pieces)


@pytest.mark.parametrize("seal", [None, True, object()])
def test_nobody_else_makes_a_committed_state(seal):
    with pytest.raises(TypeError, match="views of the chain"):
        CommittedState(views.RUN_ADDRESS, STATE.pieces.state, STATE.root, seal=seal)


def test_a_committed_state_carries_nothing_beside_its_fields():
    with pytest.raises(AttributeError):
        STATE.committed.note = "checked"


@pytest.mark.parametrize(
    "make",
    [
        lambda: committed.checkpoint_state(RUN, checkpoint(run=views.key(77))),
        lambda: committed.round_state(RUN, closed(run=views.key(77))),
    ],
    ids=["checkpoint", "round"],
)
def test_an_account_of_another_run_names_no_state(make):
    with pytest.raises(CommittedStateError, match=views.key(77).hex()):
        make()


@pytest.mark.parametrize(
    "changes",
    [
        {"flags": RoundFlag(0)},
        {"canonical_root": ZERO_DIGEST},
        {"flags": RoundFlag(0), "canonical_root": ZERO_DIGEST},
    ],
    ids=["still open", "void", "just opened"],
)
def test_an_open_or_a_void_round_names_no_state(changes):
    with pytest.raises(CommittedStateError, match="an open or a void round"):
        committed.round_state(RUN, closed(**changes))
