"""Requests of `troth join` for tests that start no participant."""

from pathlib import Path
from typing import Any

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.workflows.join_request import JoinRequest
from troth_coordinator.config_files import load_config

NOWHERE = Path("nowhere")


def request(owner: Keypair, run: Pubkey, **changes: Any) -> JoinRequest:
    """A request to join a run with the default config."""
    values: dict[str, Any] = {
        "rpc_urls": (),
        "run": run,
        "config": load_config([], {}).config,
        "data": NOWHERE,
        "state": NOWHERE,
        "owner": owner,
        "role": "both",
        "device": "cpu",
        "listen": "none",
        "endpoint": "",
        "session_lamports": 0,
        "refill_lamports": 0,
        "stake_lamports": None,
        "top_up_lamports": 0,
        "num_threads": None,
    }
    return JoinRequest(**{**values, **changes})
