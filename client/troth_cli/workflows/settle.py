"""Taking the steps of audits that are due, without taking part in the run.

Owns: the order of the steps, and what to do where somebody else was faster.
Never: judges, or decides which step is due.
Next: `troth_client/audit/due_steps.py` for the steps; `close.py`, which closes the rest.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

from solders.instruction import Instruction
from solders.keypair import Keypair

from troth_client.audit.due_steps import due_now, must_wait, step_instruction
from troth_coordinator.chain.addresses import RunAddresses
from troth_coordinator.chain.client import ConfirmedTransaction, CoordinatorClient
from troth_coordinator.chain.errors import REFUSALS, ProgramRefusedError, Refusal
from troth_coordinator.chain.instructions import freeze_seed, retarget_seed
from troth_coordinator.rules.audit_view import AuditKey, AuditStage, AuditView
from troth_coordinator.rules.audits import Step, is_ripe, now, run_clock
from troth_coordinator.rules.ids import Slot
from troth_coordinator.rules.params_checks import longest_settlement_slots
from troth_coordinator.rules.view import NetworkView, RoundView, RunView

About = tuple[AuditKey, Step]
Pause = Callable[[], Awaitable[None]]


async def settle_audits(
    client: CoordinatorClient, at: RunAddresses, key: Keypair
) -> list[ConfirmedTransaction]:
    """Take every step of an audit or a case that is due, until none is.

    One step may make another one due. When a conviction is released, the next one that waited for
    it is decided. Anybody may: `key` only pays the fees.

    Raises the refusal of a step that is due all the same: ProgramRefusedError, or that of the
    runtime where units ran out.
    """
    sent = await _settle_seeds(client, at, key)
    refused: dict[About, Refusal] = {}
    while True:
        steps = await _due_steps(client, at, key)
        untried = {about: step for about, step in steps.items() if about not in refused}
        if steps and not untried:
            raise refused[next(iter(steps))]
        if not steps:
            return sent
        for about, step in untried.items():
            try:
                sent.append(await client.send([step], [key]))
            except REFUSALS as error:
                # Somebody else was faster, unless the step is still due at the next look.
                refused[about] = error


async def pay_out(
    client: CoordinatorClient, at: RunAddresses, key: Keypair, pause: Pause
) -> AsyncIterator[ConfirmedTransaction]:
    """Take the steps of audits until nothing is in escrow; yield each as it lands.

    `pause` waits between two looks. Gives up when no step has landed for as long as the longest
    case takes. A conviction that waited for another one has windows of its own, so each step that
    lands counts anew.
    """
    run, moved = await client.read_run(at.run), await client.rpc.get_slot()
    patience = longest_settlement_slots(run.params)
    while run.total_escrow and await client.rpc.get_slot() <= moved + patience:
        for sent in await settle_audits(client, at, key):
            moved = sent.slot
            yield sent
        await pause()
        run = await client.read_run(at.run)


async def next_due(client: CoordinatorClient, at: RunAddresses, view: NetworkView) -> Slot | None:
    """Return the last slot in which no audit has a step that is due, if there is one.

    An audit that waits for another one says nothing about that.
    """
    run, audits = view.run, await client.find_audits(at.run)
    rounds, clock = await _rounds_asked(client, at, audits), run_clock(run, view.slot)
    timed = [now(audit, run.params, clock) for audit in audits]
    ends = [
        _end(audit, run, rounds.get(audit.round))
        for audit in timed
        if audit.stage != AuditStage.CASE_REVEAL or not must_wait(view, audit)
    ]
    return min((end for end in ends if end >= view.slot), default=None)


def _end(audit: AuditView, run: RunView, asked: RoundView | None) -> Slot:
    """Return the slot in which an audit's stage ends; `asked` is the round of a requested one."""
    if audit.stage == AuditStage.ACCUSED:
        return audit.case_seed_slot
    if audit.stage == AuditStage.REQUESTED and asked is not None:
        opened = asked.freeze_clock + run.params.openings_slots + run.pause_total_slots
        return Slot(opened) if is_ripe(asked) else asked.seed_slot
    is_decided = audit.stage == AuditStage.DECIDED
    end = max(audit.stage_end, audit.case_end) if is_decided else audit.stage_end
    return Slot(end + run.pause_total_slots)


async def _settle_seeds(
    client: CoordinatorClient, at: RunAddresses, key: Keypair
) -> list[ConfirmedTransaction]:
    """Freeze the seeds that requested audits wait for, or name a later slot for one that is lost.

    Without a seed, a request can neither be opened nor given back.
    """
    view = await client.snapshot(at.run)
    rounds = await _rounds_asked(client, at, await client.find_audits(at.run))
    sent = []
    for round_ in rounds.values():
        if is_ripe(round_) or view.slot <= round_.seed_slot:
            continue
        try:
            sent.append(await client.send([freeze_seed(at, key.pubkey(), round_.round)], [key]))
        except ProgramRefusedError as error:
            # Any other refusal means that somebody else was faster: the next look shows the seed.
            if error.name == "SeedSlotLost":
                later = retarget_seed(at, key.pubkey(), round_.round)
                sent.append(await client.send([later], [key]))
    return sent


async def _due_steps(
    client: CoordinatorClient, at: RunAddresses, key: Keypair
) -> dict[About, Instruction]:
    """Return the instruction of each step that is due at one look."""
    view = await client.snapshot(at.run)
    audits = await client.find_audits(at.run) if view.run.num_audits else []
    rounds = await _rounds_asked(client, at, audits)
    ripe = {number: round_ for number, round_ in rounds.items() if is_ripe(round_)}
    clock = run_clock(view.run, view.slot)
    steps = {}
    for audit in (now(audit, view.run.params, clock) for audit in audits):
        due = due_now(view, audit, ripe.get(audit.round))
        if due is not None:
            step = step_instruction(at, key.pubkey(), view, audit, due)
            steps[audit.key, due] = step
    return steps


async def _rounds_asked(
    client: CoordinatorClient, at: RunAddresses, audits: list[AuditView]
) -> dict[int, RoundView]:
    """Read the rounds of requested audits, as far as the ring holds them."""
    asked = sorted({audit.round for audit in audits if audit.stage == AuditStage.REQUESTED})
    found = await client.read_rounds(at.run, asked) if asked else []
    return {round_.round: round_ for round_ in found if round_ is not None}
