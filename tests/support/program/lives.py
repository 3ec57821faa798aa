"""Runs that are closed and created again under the same address.

Owns: the two ways to get there: unused, and after a whole life. Never: reads events.
Next: closing.py for the end of a run; rounds.py for its life.
"""

from solders.instruction import Instruction

from support.program.closing import close, leave_and_close, round_pairs
from support.program.ledger import Ledger
from support.program.rounds import SOL, RoundDriver, key, root_of
from troth_coordinator.chain import instructions as make
from troth_localnet.direct import record_of

BATCH = 8
LIFE = {"max_rounds": 3, "join_until_round": 3, "checkpoint_every": 3, "keep_rounds": 2}


class ClosedUnused(RoundDriver):
    """The authority closes the run before anybody has joined, and creates it again."""

    def _create(self, pool: int) -> None:
        super()._create(pool)
        pairs = round_pairs(self)
        self.send(close(self, pairs[:BATCH]), self.authority)
        self.chain.send(self._signed(close(self, pairs[BATCH:]), [self.authority]))
        self.ledger = Ledger()
        self.chain.advance(3)
        super()._create(pool)


class ClosedAtOnce(RoundDriver):
    """One transaction closes the unused run and creates it again."""

    def _create(self, pool: int) -> None:
        super()._create(0)
        pairs = round_pairs(self)
        self.send(close(self, pairs[:BATCH]), self.authority)
        last = close(self, pairs[BATCH:])
        raw = self._signed([last, self.creation()], [self.authority])
        landed = self.chain.history.get(self.chain.send(raw))
        assert landed is not None
        self.ledger.absorb(self._events.read(record_of(landed)).events)
        owner = self.authority.pubkey()
        self.create([make.init_roster(self.at, owner)] * 3, self.authority)
        for position in range(self.params.ring):
            self.send(make.init_round(self.at, owner, position), self.authority)

    def creation(self) -> Instruction:
        terms = make.RunTerms(
            self.run_id, b"c" * 32, b"m" * 32, root_of(0), key("council").pubkey(), self.params
        )
        return make.create_run(self.at, self.authority.pubkey(), terms)


def live(driver: RoundDriver, rounds: int = 3) -> None:
    """Play a life of the run to its end."""
    driver.start()
    driver.play(rounds)
    driver.cool_down()


def create_again(driver: RoundDriver) -> None:
    """Close a run that has ended; the authority creates it again, and everybody joins."""
    leave_and_close(driver)
    driver.ledger = Ledger()
    driver._create(SOL)
    for index in range(len(driver.owners)):
        driver.join(index)
