"""Creates runs step by step, for tests of what creating refuses.

Next: rounds.py, whose runs are created in one go.
"""

from solders.instruction import Instruction

from support.program.chain import ChainDriver
from support.program.rounds import SOL, key, params_of, root_of
from troth_coordinator.chain import instructions as make
from troth_coordinator.rules.params_view import ParamsView

AUTHORITY = key("authority")
RUN_ID = b"r" * 32


def new_chain(ring: int = 16) -> ChainDriver:
    """A chain on which the authority has lamports, and nothing is created yet."""
    made = ChainDriver(AUTHORITY.pubkey(), RUN_ID, ring)
    made.chain.airdrop(AUTHORITY.pubkey(), 100 * SOL)
    return made


def create(of: ChainDriver, params: ParamsView | None = None) -> Instruction:
    """Create the run of the authority."""
    terms = make.RunTerms(
        RUN_ID, b"c" * 32, b"m" * 32, root_of(0), key("council").pubkey(), params or params_of()
    )
    return make.create_run(of.at, AUTHORITY.pubkey(), terms)


def rosters(of: ChainDriver, count: int = 3) -> list[Instruction]:
    """Create the roster, which needs three steps to its full size."""
    return [make.init_roster(of.at, AUTHORITY.pubkey()) for _ in range(count)]
