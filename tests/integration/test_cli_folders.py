"""`troth join` and its state folder: another one, or that of a chain that is gone, is refused."""

import asyncio
import signal
from dataclasses import replace

import pytest
from solders.pubkey import Pubkey
from support.network import SOL, processes, refused_check, start

from troth_cli.state_folders import state_folder
from troth_simulation.faults.proxy import TcpProxy
from troth_simulation.faults.trouble import Effect, Trouble

pytestmark = pytest.mark.processes
PATIENT = ("chain.commit_slots=400", "chain.attest_slots=400", "chain.warmup_slots=800")
PATIENT += ("chain.vesting_slots=9000", "chain.unbond_slots=9000")


@pytest.fixture
def joined(bench):
    with processes(bench) as begin:
        yield begin


def with_option(arguments, option, value):
    """The arguments with another value of an option."""
    result = list(arguments)
    result[result.index(option) + 1] = value
    return result


def with_state(arguments, folder):
    return with_option(arguments, "--state", folder)


def begun(joined, arguments, name):
    """A member that joined and was stopped before the run began."""
    process = joined(arguments, name)
    process.wait_for("phase=WAITING_FOR_MEMBERS")
    process.signal(signal.SIGTERM)
    assert process.code() == 0, process.notes()


def test_a_member_with_another_state_folder_is_refused_and_told_where_its_own_is(
    bench, joined, monkeypatch
):
    monkeypatch.chdir(bench.folder)
    run = bench.create(*PATIENT)
    own = state_folder(Pubkey.from_string(run), bench.keypair("a").pubkey())
    arguments = with_state(bench.join_arguments(run, "a", anyway=()), own)
    begun(joined, (*arguments, "--anyway"), "first")
    before = bench.balance("a")
    empty = with_state(arguments, bench.folder / "elsewhere")
    found = refused_check(bench.cli.refused(*empty), "state")
    assert found["kind"] == "OtherFolderError"
    assert found["can_go_on"] is True
    assert f"--state {own}" in found["advice"]
    assert "fine" in found["advice"]
    assert bench.balance("a") == before, "no session key was funded"
    checks = bench.cli.json(*arguments, "--check")["checks"]
    assert {one["check"]: one["level"] for one in checks}["state"] == "ok"
    begun(joined, (*empty, "--anyway"), "taken")
    back = refused_check(bench.cli.refused(*arguments), "state")
    assert "another session key" in back["found"], "it was used from elsewhere since"


def test_the_folder_of_a_chain_that_is_gone_is_refused_on_the_next_and_nothing_is_paid(
    bench, joined
):
    run = bench.create(*PATIENT)
    begun(joined, bench.join_arguments(run, "a"), "first")
    (bench.folder / "run.toml").unlink()
    launcher = start()
    try:
        for name in ("authority", "a"):
            launcher.airdrop(bench.address(name), 10 * SOL)
        fresh = replace(bench, launcher=launcher)
        assert fresh.create(*PATIENT) == run, "the same commands, the same address"
        error = fresh.cli.refused(*fresh.join_arguments(run, "a"))
        assert error["kind"] == "StoreIdentityError"
        assert "genesis_hash" in error["expected"]
        assert "Remove or rename this folder" in error["next_step"]
        assert fresh.balance("a") == 10 * SOL
        status = fresh.cli.json(*fresh.of_run("status", run=run))
        assert status["participants"] == []
    finally:
        launcher.stop()


def test_a_member_that_starts_before_its_network_waits_for_it(bench, joined):
    """A restart of the machine: a participant that ended then would miss its audits."""
    run = bench.create(*PATIENT)
    arguments = bench.join_arguments(run, "a")
    begun(joined, arguments, "first")

    async def come_back():
        host, port = bench.rpc.removeprefix("http://").split(":")
        async with TcpProxy((host, int(port))) as line:
            await line.set(Trouble(Effect.REFUSE))
            back = with_option(arguments, "--rpc", line.url)
            for others in ((*back, "--check"), with_state(back, bench.folder / "new")):
                found = await asyncio.to_thread(bench.cli.refused, *others)
                assert found["kind"] == "RpcUnreachableError"
            process = joined(back, "back")
            await asyncio.to_thread(process.wait_for, "asked again")
            await line.set(None)
            await asyncio.to_thread(process.wait_for, "phase=WAITING_FOR_MEMBERS")
            process.signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.code) == 0

    asyncio.run(come_back())
