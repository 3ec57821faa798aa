"""The way to the weights of a run whose members have ended."""

from pathlib import Path

from solders.pubkey import Pubkey
from support.views import run_view

from troth_cli.workflows.checkpoint_fetch import at_the_end
from troth_client.checkpoint.errors import CheckpointGoneError
from troth_coordinator.rules.phase import Phase

GONE = CheckpointGoneError("somebody who serves the weights", "nobody", "Try again later.")
OVER = run_view(phase=Phase.FINISHED)
STATES = Path("troth-state")


def test_while_the_run_goes_on_the_error_stays():
    assert at_the_end(GONE, run_view(), STATES) is GONE


def test_after_the_end_the_error_names_where_members_keep_the_weights():
    told = at_the_end(GONE, OVER, STATES)
    assert "has finished" in told.found
    name = f"{str(Pubkey(OVER.address))[:8]}-*"
    assert f"troth-state/{name}/weights of each" in told.next_step
    assert "later" not in told.next_step


def test_after_the_end_the_error_names_the_folder_on_this_machine(tmp_path):
    own = tmp_path / f"{str(Pubkey(OVER.address))[:8]}-abcdefgh" / "weights"
    own.mkdir(parents=True)
    assert f"{own} here" in at_the_end(GONE, OVER, tmp_path).next_step
