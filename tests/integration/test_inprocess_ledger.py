"""A run on a kept chain goes on after the chain and all its members were away."""

from support.runs import assert_finished, included, start_members, time_stopped, until_round

from troth_coordinator import artifacts
from troth_coordinator.chain.layouts import program_layout
from troth_localnet.direct import DirectRpc
from troth_localnet.ledger import Ledger
from troth_simulation import in_process

IMAGES = {program_layout().program_id: artifacts.program_image()}


async def test_a_run_goes_on_where_its_chain_stopped(run_factory, tmp_path, monkeypatch):
    opened = []

    def kept(config):
        ledger, chain = Ledger.open(tmp_path / "ledger", config, IMAGES)
        opened.append(ledger)
        return chain

    monkeypatch.setattr(in_process, "Chain", kept)
    run = await run_factory.create(6)
    await start_members(run, ["ada", "bob", "cyd"])
    await until_round(run, 3)
    with time_stopped(run):
        for one in run.members:
            await run.stop(one)
        before = await run.view()
        opened[0].close()
        run.chain = kept(run.chain.config)
        run.rpc = DirectRpc(run.chain)
        run.client = in_process.CoordinatorClient(run.rpc, sleeper=in_process._no_wait)
        assert await run.view() == before
        for one in run.members:
            await run.start(one)
    await run.finish()
    await assert_finished(run)
    opened[-1].close()
    assert list(included(run, "ada")) == list(range(6))
    stake = run.settings.chain.min_stake_lamports
    assert [entry.stake for entry in (await run.view()).entries[:3]] == [stake] * 3
