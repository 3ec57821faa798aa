"""A transition that costs more than its transaction may use ends nobody that tries it."""

from support.ports import Wrapped
from support.runs import assert_finished, assert_one_root_per_round, events_of, start_members

from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.transactions import ComputeBudget

CLOSE = program_codec().instructions["close_round"].discriminator
FAILURES = 6
TOO_FEW_UNITS = 30_000


def one_slot_late(one, ports):
    """Dan fetches a slot later than others: its attestation is the last and carries the close."""
    if one.name == "dan":
        wire = ports.transport._wire

        async def read(holder, wanted, into):
            await ports.runtime.wait()
            await wire.read(holder, wanted, into)

        ports.transport._wire = Wrapped(wire, read=read)
    return ports


async def test_a_close_that_runs_out_of_units_is_tried_again_and_ends_no_member(
    run_factory, monkeypatch
):
    """A round in a state dearer than the table: others, or a later state, may still close it."""
    honest, starved = ComputeBudget.limit, []

    def limit(budget, instructions):
        closes = any(bytes(one.data[:8]) == CLOSE for one in instructions)
        if closes and len(starved) < FAILURES:
            starved.append(len(instructions))
            return TOO_FEW_UNITS
        return honest(budget, instructions)

    monkeypatch.setattr(ComputeBudget, "limit", limit)
    run = await run_factory.create(3)
    run.wrap = one_slot_late
    await start_members(run, ["ada", "bob", "cyd", "dan"])
    await run.finish()
    await assert_finished(run)
    assert_one_root_per_round(run)
    assert len(starved) == FAILURES and max(starved) == 2, "as a carried step, and by itself"
    names = [
        one["name"] for who in run.members for one in events_of(run, who.name, "crank_refused")
    ]
    assert "TransactionRejectedError" in names
    attested = sum(len(events_of(run, one.name, "attested")) for one in run.members)
    assert attested == 4 * 3
