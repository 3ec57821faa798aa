"""A kept chain goes on as if it had never stopped, or says why it cannot."""

import contextlib
import sqlite3

import pytest
from solders.address_lookup_table_account import AddressLookupTableAccount
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from support.disks import no_file_beyond
from support.localnet import SOL, Wallet, memo, pay, put_table, signed_v0

from troth_coordinator import artifacts
from troth_coordinator.chain.layouts import program_layout
from troth_localnet.errors import ChainDamagedError, ChainInUseError, ChainMismatchError
from troth_localnet.ledger import FILE_NAME, Ledger
from troth_localnet.svm import Chain, ChainConfig

CONFIG = ChainConfig(seed=b"kept")
PROGRAM = program_layout().program_id


class Kept:
    """One ledger in a folder; opening it closes it first, as the end of its process would."""

    def __init__(self, folder):
        self.folder = folder
        self._ledger = None

    @property
    def file(self):
        return self.folder / FILE_NAME

    def __call__(self, config=CONFIG, images=None):
        self.close()
        self._ledger, chain = Ledger.open(self.folder, config, images or {})
        return chain

    def close(self):
        if self._ledger is not None:
            self._ledger.close()

    def change(self, statement, *values):
        """Change the file behind the chain's back."""
        self.close()
        with contextlib.closing(sqlite3.connect(self.file)) as database, database:
            database.execute(statement, values)


@pytest.fixture
def reopen(tmp_path):
    kept = Kept(tmp_path / "ledger")
    yield kept
    kept.close()


def live(chain, wallet, to):
    """Some slots with payments, an emptied account, a failure that takes its fee, skipped slots."""
    chain.send(wallet.payment(to, SOL))
    chain.advance(3)
    chain.skip(2)
    chain.send(wallet.transaction(memo(b"hello", wallet.pubkey)))
    chain.send(wallet.payment(to, 100 * SOL), skip_preflight=True)
    chain.advance(1)


def known(chain):
    """Everything that a client can see of a chain."""
    addresses = sorted(map(str, chain.accounts.addresses()))
    return {
        "accounts": {one: chain.accounts.get(Pubkey.from_string(one)) for one in addresses},
        "slot": (chain.slot, chain.height, chain.blocks.open.unix_timestamp),
        "blockhash": chain.latest_blockhash(),
        "genesis": chain.blocks.genesis_hash,
        "slot hashes": chain.blocks.slot_hashes(),
        "blocks": [chain.blocks.block(slot) for slot in chain.blocks.slots(0, chain.slot)],
        "landed": list(chain.history.newest_first(chain.faucet)),
        "faucet": (chain.faucet, chain.num_airdrops, chain.history.num_landed),
    }


def test_a_chain_that_is_opened_again_is_the_same_chain(reopen):
    chain = reopen()
    wallet, to = Wallet(chain), Pubkey.new_unique()
    live(chain, wallet, to)
    before, statuses = known(chain), list(chain.history.newest_first(wallet.pubkey))
    again = reopen(ChainConfig(seed=b"another seed", genesis_unix_timestamp=5))
    assert known(again) == before
    assert list(again.history.newest_first(wallet.pubkey)) == statuses
    assert [one.outcome.error is None for one in statuses] == [False, True, True, True]


def test_it_goes_on_as_a_chain_that_never_stopped(reopen):
    """The same transactions give the same hashes, whether the chain was opened again or not."""
    wallet, to, twin = None, Pubkey.new_unique(), Chain(CONFIG)
    chain = reopen()
    wallet = Wallet(chain)
    twin.send(bytes(next(chain.history.newest_first(wallet.pubkey)).transaction))
    twin.num_airdrops = chain.num_airdrops
    for _ in range(3):
        sent = wallet.payment(to, SOL)
        for one in (chain, twin):
            one.send(sent)
            one.advance(200)
        chain = wallet.chain = reopen()
        assert known(chain) == known(twin)


def test_what_was_sent_before_is_not_taken_twice(reopen):
    chain = reopen()
    wallet, to = Wallet(chain), Pubkey.new_unique()
    sent = wallet.payment(to, SOL)
    chain.send(sent)
    again = reopen()
    again.send(sent, skip_preflight=True)
    assert again.accounts.balance(to) == SOL


def test_keys_from_lookup_tables_stay_known(reopen):
    chain = reopen()
    wallet, table, to = Wallet(chain), Pubkey.new_unique(), Pubkey.new_unique()
    put_table(chain, table, [to])

    account = AddressLookupTableAccount(table, [to])

    blockhash = chain.latest_blockhash()[0]
    sent = signed_v0([pay(wallet.key, to, SOL)], [wallet.key], [account], blockhash)
    chain.send(bytes(sent))
    (landed,) = reopen().history.newest_first(to)
    assert landed.keys.loaded_writable == (to,)


def test_a_program_with_its_accounts_is_kept_once(reopen):
    images = {PROGRAM: artifacts.program_image()}
    before = known(reopen(images=images))
    assert known(reopen(images=images)) == before


@pytest.mark.parametrize(
    ("config", "images", "what"),
    [
        (CONFIG, [], "program"),
        (ChainConfig(slot_milliseconds=50), [PROGRAM], "slot_milliseconds"),
    ],
)
def test_a_ledger_of_something_else_is_refused_and_left_alone(reopen, config, images, what):
    image = artifacts.program_image()
    before = known(reopen(images={PROGRAM: image}))
    images = dict.fromkeys(images, image)
    with pytest.raises(ChainMismatchError, match=what) as caught:
        reopen(config, images)
    assert str(reopen.file) in caught.value.expected
    assert known(reopen(images={PROGRAM: image})) == before


def test_a_ledger_of_another_version_is_refused(reopen):
    reopen()
    reopen.change("UPDATE settings SET value = '7' WHERE name = 'version'")
    with pytest.raises(ChainMismatchError, match="version 7"):
        reopen()


def test_two_processes_do_not_share_a_ledger(reopen):
    reopen()
    with pytest.raises(ChainInUseError, match=FILE_NAME):
        Ledger.open(reopen.folder, CONFIG, {})


def test_a_file_that_is_no_ledger_is_named_and_left_alone(reopen):
    reopen.folder.mkdir()
    reopen.file.write_bytes(b"no ledger at all" * 1_000)
    with pytest.raises(ChainDamagedError, match=FILE_NAME):
        reopen()
    assert reopen.file.read_bytes() == b"no ledger at all" * 1_000


def test_an_empty_file_is_a_new_ledger(reopen):
    """A process that was killed before its first write leaves one."""
    reopen.folder.mkdir()
    reopen.file.touch()
    assert reopen().slot == 1


def test_a_changed_account_is_named(reopen):
    address = Wallet(reopen()).pubkey
    reopen.change("UPDATE accounts SET state = zeroblob(49) WHERE address = ?", bytes(address))
    with pytest.raises(ChainDamagedError, match=str(address)):
        reopen()


def test_a_file_that_lost_its_end_is_named(reopen):
    for _ in range(20):
        Wallet(reopen())
    reopen.close()
    size = reopen.file.stat().st_size
    with reopen.file.open("r+b") as stream:
        stream.truncate(size // 2)
    with pytest.raises(ChainDamagedError, match=FILE_NAME):
        reopen()


def test_a_full_disk_stops_no_chain_and_the_ledger_catches_up(reopen, caplog):
    chain = reopen()
    wallet, to = Wallet(chain), Keypair().pubkey()
    with no_file_beyond(1):
        live(chain, wallet, to)
    assert FILE_NAME in caplog.text
    chain.advance(1)
    before = known(chain)
    assert known(reopen()) == before
    assert chain.accounts.balance(to) == SOL
