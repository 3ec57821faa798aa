"""A cheat that serves the openings of forged work late, to a part of its jury.

No partner is needed: who has asked in vain by then has said `unavailable`, whoever is served says
`mismatch`, and until both counted together neither had two thirds.
"""

from dataclasses import replace
from typing import Any

import pytest
from support.attacks.cheats import ALWAYS, CHEAT, FIRST_LIE, HONEST, MAL, Books, play_out
from support.attacks.judges import REWARD, STAKE
from support.fields import assert_fields
from support.program.losses import fined_lamports
from support.runs import BOTH, WINDOWS, InProcessRun, RunFactory

from troth_attestation.quorum import AuditOutcome, CaseOutcome
from troth_attestation.verdict import VerdictKind
from troth_client.participant.assembly import Ports
from troth_client.transport.base import BlobKind
from troth_client.transport.errors import HolderLacksError
from troth_coordinator.rules.view import Role
from troth_simulation.cheats.catalogue import CHEATS
from troth_simulation.cheats.ports import cheating

SERVED = ("ada", "bob")
"""Accept no connection: what they have nobody else gets in the slots that are left."""
REFUSED = ("cyd", "dan")
SHOWN = range(11, 16)
"""Slots before the end of the jury's window of 30 in which the openings are shown. Jurors that have
found nothing give up ten slots before it."""


class Late:
    """Opening sets of which that of the first lie is shown in a few slots alone."""

    def __init__(self, sets: Any, books: Books, run: InProcessRun) -> None:
        self._sets, self._books, self._run = sets, books, run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sets, name)

    def shown(self, root: bytes) -> Any:
        if not self._books.named("OpeningsPosted", target=MAL, round=FIRST_LIE, root=root):
            return self._sets.shown(root)
        drawn = self._books.named("JuryDrawn", target=MAL)
        is_time = bool(drawn) and drawn[-1].stage_end - self._run.chain.slot in SHOWN
        return self._sets.shown(root) if is_time else None


class LateTransport:
    """Pushes the opening set of the first lie to nobody, and shows it late."""

    def __init__(self, transport: Any, books: Books, run: InProcessRun) -> None:
        self._transport, self._books, self._run = transport, books, run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def offer(self, blob: Any, holders: Any) -> Any:
        return () if blob.round == FIRST_LIE else await self._transport.offer(blob, holders)

    def show(self, sets: Any) -> None:
        self._transport.show(Late(sets, self._books, self._run))


def refuse_openings(ports: Ports) -> None:
    """The cheat tells this member that it has no openings of its first lie."""
    wire = ports.transport._wire
    read = wire.read

    async def refused(holder: str, blob: Any, into: Any) -> None:
        if (holder, blob.kind, blob.round) == (CHEAT, BlobKind.OPENINGS, FIRST_LIE):
            raise HolderLacksError("openings", "nothing", "Asking another.")
        await read(holder, blob, into)

    wire.read = refused


@pytest.mark.long(reason="a whole run")
async def test_serving_half_of_the_jury_too_late_for_the_rest_is_a_refusal(
    run_factory: RunFactory,
) -> None:
    """A forged payload costs twelve rewards and the next step, not one reward. Threat T45."""
    run = await run_factory.create(FIRST_LIE + 1, min_members=3, **WINDOWS, **ALWAYS)
    books = Books(run)

    def wrap(one: Any, ports: Ports) -> Ports:
        if one.name == CHEAT:
            made = cheating(CHEATS["free-rider"], ports)
            return replace(made, transport=LateTransport(made.transport, books, run))
        if one.name in REFUSED:
            refuse_openings(ports)
        return ports

    run.wrap = wrap
    for name in (*HONEST, CHEAT):
        role = Role.TRAINER if name == CHEAT else BOTH
        await run.add(name, role, listens=name not in SERVED)
    for one in run.members:
        await run.start(one)
    await play_out(run)
    (audit,) = books.settled(FIRST_LIE)
    assert audit.outcome == AuditOutcome.UNAVAILABLE
    votes = [vote.verdict for vote in books.named("JurorVoteRevealed", target=MAL)]
    assert sorted(votes) == [VerdictKind.MISMATCH] * 2 + [VerdictKind.UNAVAILABLE] * 2
    (case,) = books.named("CaseSettled", target=MAL)
    assert_fields(case, outcome=CaseOutcome.NO_OPENINGS, reward_undone=REWARD)
    (loss,) = books.of(MAL)
    assert fined_lamports(loss.event) == 12 * REWARD
    entry = (await run.view()).entries[MAL]
    assert entry.stake < STAKE and entry.openings_step == 1
    assert [one for one in books.losses if one is not loss] == []
