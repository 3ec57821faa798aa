"""Requests of `troth join` for tests that start no participant."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_cli.workflows.join_request import JoinRequest
from troth_client.participant.settings import ParticipantSettings
from troth_coordinator.config_files import load_config

NOWHERE = Path("nowhere")


def request(owner: Keypair, run: Pubkey, **changes: Any) -> JoinRequest:
    """A request to join a run with the default config, changed in itself or in its settings."""
    settings = ParticipantSettings(
        rpc_urls=(),
        run=str(run),
        config=load_config([], {}).config,
        data=NOWHERE,
        state=NOWHERE,
        owner=bytes(owner),
        session=b"",
        device="cpu",
        session_lamports=0,
        refill_lamports=0,
    )
    return with_changes(JoinRequest(settings, listen="none"), **changes)


def with_changes(made: JoinRequest, **changes: Any) -> JoinRequest:
    """The request with other values, in its own fields and in those of its settings."""
    own = {one.name for one in fields(JoinRequest)} & changes.keys()
    made = replace(made, **{name: changes[name] for name in own})
    return made.changed(**{name: changes[name] for name in changes.keys() - own})
