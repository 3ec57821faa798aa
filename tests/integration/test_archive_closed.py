"""An archive of a run that was closed, also where somebody has paid to its address since."""

import pytest
from solders.system_program import ID as SYSTEM_PROGRAM
from support.archives import recorded

from troth_coordinator.chain.client import CoordinatorClient
from troth_coordinator.chain.rpc import Account

DUST = Account(1_000_000, SYSTEM_PROGRAM, b"")


@pytest.fixture(scope="module")
def past(data, tmp_path_factory):
    """A short run and its archive."""
    with recorded(data, tmp_path_factory.mktemp("past"), 2) as found:
        yield found


class Later:
    """The node of a run after its end: at the address of the run there is what is given."""

    def __init__(self, rpc, run, left):
        self.rpc, self.run, self.left = rpc, run, left

    def __getattr__(self, name):
        return getattr(self.rpc, name)

    async def get_accounts(self, addresses):
        slot, accounts = await self.rpc.get_accounts(addresses)
        pairs = zip(addresses, accounts, strict=True)
        return slot, [self.left if address == self.run else one for address, one in pairs]


@pytest.mark.parametrize("left", [None, DUST], ids=["nothing", "lamports of a stranger"])
async def test_an_archive_of_a_closed_run_is_done(past, tmp_path, left):
    """Threat T135. The run's account is gone, and its archive has all that it was kept for."""
    archivist = past.archivist(tmp_path / "out")
    await archivist.until_done()
    again = past.archivist(tmp_path / "out")
    again.client = CoordinatorClient(Later(past.run.rpc, past.run.at.run, left))
    keeper = await again.until_done()
    assert keeper.is_done
    assert again.missing() == []
    assert again.events.named("chain_unreachable") == []
