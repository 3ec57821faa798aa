"""The place of a participant on chain: found, taken, or announced anew.

Owns: the deposit, a new session key of an earlier join, the announced endpoint. One that has left
goes on under its index while audits may ask it for something, and deposits nothing.
Never: fetches weights; a newcomer has them before it deposits.
Next: `process.py`, which calls these in order; `arrival.py` for what comes before a deposit.
"""

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_client.network.errors import ReplacedError
from troth_client.participant.settings import ParticipantSettings
from troth_client.telemetry.events import EventSink
from troth_coordinator.chain.attempts import Once
from troth_coordinator.chain.errors import RpcError, TransactionError
from troth_coordinator.chain.operations import JoinOffer, Owner
from troth_coordinator.rules.ids import ParticipantIndex
from troth_coordinator.rules.membership import index_of_owner, index_to_serve
from troth_coordinator.rules.view import EntryView, NetworkView, ParticipantView, Status


async def known_place(owner: Owner) -> tuple[ParticipantIndex | None, str]:
    """Return index and endpoint of an earlier join; None and "" for a newcomer."""
    _view, known, participant = await _place(owner)
    if known is None:
        return None, ""
    return known, "" if participant is None else participant.endpoint


async def _place(
    owner: Owner,
) -> tuple[NetworkView, ParticipantIndex | None, ParticipantView | None]:
    participant = await owner.client.read_participant(owner.at.run, owner.key.pubkey())
    view = await owner.client.snapshot(owner.at.run)
    known = index_of_owner(view.entries, bytes(owner.key.pubkey()))
    return view, index_to_serve(view, participant) if known is None else known, participant


async def join(
    owner: Owner, settings: ParticipantSettings, session: Keypair, endpoint: str, once: Once
) -> tuple[ParticipantIndex, int]:
    """Return our index (of an earlier join or a new one) and the fee in lamports.

    May be repeated with the same `once`: an earlier join's new session key is then funded once. A
    deposit needs none, since the program takes one of an owner. Raises ReplacedError where there is
    no place and nothing may be deposited, or where one that has left cannot take another session
    key.
    """
    view, known, _participant = await _place(owner)
    if known is None and not settings.may_deposit:
        raise ReplacedError(
            f"owner {owner.key.pubkey()} to have a place in run {owner.at.run}",
            "none any more, and no agreement to deposit another stake",
            "Repeat the command: it checks anew, and says what joining takes.",
        )
    if known is None:
        more = max(0, (settings.stake_lamports or 0) - view.run.params.min_stake_lamports)
        index, sent = await owner.join_run(
            JoinOffer(
                session.pubkey(), int(settings.role), endpoint, settings.session_lamports, more
            )
        )
        return ParticipantIndex(index), sent.fee_lamports
    entry = view.entries[known]
    if bytes(session.pubkey()) in (entry.session, entry.next_session):
        return known, 0
    _check_change(entry, session)
    money = 0 if once.is_signed else settings.session_lamports
    sent = await owner.set_session_key(session.pubkey(), money, once)
    return known, sent.fee_lamports


def _check_change(entry: EntryView, session: Keypair) -> None:
    """Raise ReplacedError where the program would refuse another session key."""
    if entry.status == Status.LEFT and not entry.audits:
        raise ReplacedError(
            f"session key {Pubkey(entry.session)}, under which this participant left",
            f"{session.pubkey()} in this state folder",
            "Start it in the folder that it had: the key changes only while an audit names it.",
        )


async def announce(owner: Owner, announced: str, ours: str, events: EventSink) -> None:
    """Change the announced endpoint where it is not ours; others read it within some slots.

    A refusal ends nobody: payloads and openings are pushed, whatever the chain announces.
    """
    if announced == ours:
        return
    try:
        sent = await owner.set_endpoint(ours)
    except (TransactionError, RpcError) as error:
        reason = (
            f"others look for this participant at {announced or 'no address'}, not at"
            f" {ours or 'none'}, and the change did not land ({error}); `troth set-endpoint` tries"
            " it again"
        )
        events.emit("endpoint_differs", reason=reason)
    else:
        events.emit("endpoint_set", before=announced, endpoint=ours, fee=sent.fee_lamports)
