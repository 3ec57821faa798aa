"""The way to the weights of a run whose members have ended."""

from solders.pubkey import Pubkey
from support.views import run_view

from troth_cli.state_folders import state_folder
from troth_cli.workflows.checkpoint_fetch import at_the_end
from troth_client.checkpoint.errors import CheckpointGoneError
from troth_coordinator.rules.phase import Phase

GONE = CheckpointGoneError("somebody who serves the weights", "nobody", "Try again later.")
OVER = run_view(phase=Phase.FINISHED)


def test_while_the_run_goes_on_the_error_stays():
    assert at_the_end(GONE, run_view()) is GONE


def test_after_the_end_the_error_names_where_members_keep_the_weights():
    told = at_the_end(GONE, OVER)
    assert "has finished" in told.found
    name = f"{str(Pubkey(OVER.address))[:8]}-*"
    assert f"troth-state/{name}/weights of each" in told.next_step
    assert "later" not in told.next_step


def test_after_the_end_the_error_names_the_folder_on_this_machine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = state_folder(Pubkey(OVER.address), Pubkey(bytes(32))) / "weights"
    own.mkdir(parents=True)
    assert f"{own} here" in at_the_end(GONE, OVER).next_step
