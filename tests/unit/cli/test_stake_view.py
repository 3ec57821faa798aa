"""`troth stake show` for participants that have left, and for those that came back."""

import pytest
from solders.pubkey import Pubkey
from support.views import PARAMS, entry, network, roster, run_view

from troth_attestation.slashing import Fault
from troth_audit.slashes import Slash
from troth_cli.slot_time import STATED
from troth_cli.view.participants import owner_values
from troth_cli.view.stake import losses_of, stake_blocks, stake_values
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import Status

ANNA = entry(1).owner
OWNER = Pubkey.from_bytes(ANNA)


def fine(round_, index):
    return Slash(
        round=round_,
        index=index,
        fault=Fault.ABSENT_SEAT,
        taken=5,
        burned=5,
        challenger=None,
        acquitted=None,
        is_paid_out=True,
    )


def view_of(*entries, **changes):
    return network(run=run_view(**changes), entries=roster(*entries))


@pytest.mark.parametrize(
    ("status", "phase"),
    [(Status.LEFT, Phase.COMMIT), (Status.BARRED, Phase.COMMIT), (Status.ACTIVE, Phase.FINISHED)],
)
def test_nobody_is_told_to_top_up_where_that_would_be_refused(status, phase):
    values = stake_values(view_of(entry(1, status=status, stake=0), phase=phase), None, OWNER)
    assert values["needed_lamports"] is None
    assert "top-up" not in str(stake_blocks(values, [], STATED))


def test_who_has_too_little_is_told_how_much_is_missing():
    values = stake_values(view_of(entry(1, stake=PARAMS.keep_stake_lamports - 7)), None, OWNER)
    assert values["needed_lamports"] == PARAMS.keep_stake_lamports
    assert "0.000000007 SOL: troth stake top-up" in str(stake_blocks(values, [], STATED))


def test_what_somebody_lost_after_leaving_is_a_loss_too():
    """Silence on a seat is paid from the stake that unbonds."""
    view = view_of(entry(2), entry(1, status=Status.LEFT, joined_round=4))
    losses = losses_of(view, OWNER, [fine(3, 1), fine(4, 1), fine(9, 1), fine(9, 0)])
    assert [loss["round"] for loss in losses] == [4, 9]


def test_who_came_back_at_another_index_is_shown_as_it_is_now():
    left = entry(1, status=Status.LEFT, stake=0, joined_round=2)
    view = view_of(left, entry(2), entry(1, stake=70, joined_round=8))
    assert owner_values(view, None, OWNER)["stake_lamports"] == 70
    assert [loss["round"] for loss in losses_of(view, OWNER, [fine(9, 0), fine(9, 2)])] == [9]
