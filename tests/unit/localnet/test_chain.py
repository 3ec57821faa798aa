import random

import pytest
from solders.account import Account
from solders.address_lookup_table_account import AddressLookupTableAccount
from solders.hash import Hash
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.signature import Signature
from solders.system_program import CreateAccountParams, create_account
from solders.transaction import SanitizeError, VersionedTransaction
from support.localnet import MEMO, SOL, Wallet, memo, pay, put_table, signed, signed_v0

from troth_coordinator.chain import loader
from troth_localnet.blocks import skip_every
from troth_localnet.errors import (
    AirdropRefusedError,
    InvalidTransactionError,
    ProgramImageError,
    RefusedTransactionError,
)
from troth_localnet.message import LOOKUP_TABLE_PROGRAM
from troth_localnet.svm import Chain, ChainConfig

RENT = 890_880


@pytest.fixture
def chain():
    return Chain()


@pytest.fixture
def wallet(chain):
    return Wallet(chain)


def refusal(chain, raw):
    with pytest.raises(RefusedTransactionError) as caught:
        chain.send(raw)
    return caught.value.outcome


def test_a_transfer_moves_lamports_and_takes_the_fee(chain, wallet):
    to = Pubkey.new_unique()
    before = wallet.lamports
    signature = chain.send(wallet.payment(to, SOL))
    landed = chain.history.get(signature)
    assert chain.accounts.balance(to) == SOL
    assert wallet.lamports == before - SOL - 5_000
    assert landed.fee_lamports == 5_000
    assert landed.outcome.error is None
    payer, receiver = 0, 1
    assert landed.pre_balances[payer] == before
    assert landed.pre_balances[receiver] == 0
    assert landed.post_balances[payer] == before - SOL - 5_000
    assert landed.post_balances[receiver] == SOL


def test_preflight_changes_nothing_and_shows_the_logs(chain, wallet):
    before = wallet.lamports
    outcome = refusal(chain, wallet.payment(Pubkey.new_unique(), 10**15))
    assert outcome.error == {"InstructionError": [0, {"Custom": 1}]}
    assert any("insufficient lamports" in line for line in outcome.logs)
    assert wallet.lamports == before
    assert chain.history.num_landed == 1  # the airdrop


def test_without_preflight_the_failure_lands_and_costs_the_fee(chain, wallet):
    before = wallet.lamports
    signature = chain.send(wallet.payment(Pubkey.new_unique(), 10**15), skip_preflight=True)
    landed = chain.history.get(signature)
    assert landed.outcome.error == {"InstructionError": [0, {"Custom": 1}]}
    assert wallet.lamports == before - 5_000
    assert landed.fee_lamports == 5_000


def test_the_same_transaction_lands_once(chain, wallet):
    raw = wallet.payment(Pubkey.new_unique(), SOL)
    chain.send(raw)
    assert refusal(chain, raw).error == "AlreadyProcessed"
    chain.advance(149)
    assert refusal(chain, raw).error == "AlreadyProcessed"


def test_a_landed_failure_cannot_be_sent_again(chain, wallet):
    raw = wallet.payment(Pubkey.new_unique(), 10**15)
    chain.send(raw, skip_preflight=True)
    before = wallet.lamports
    chain.send(raw, skip_preflight=True)
    assert wallet.lamports == before


def test_forgetting_history_never_lets_a_duplicate_through():
    chain = Chain(ChainConfig(num_transactions_kept=3))
    wallet = Wallet(chain, 1_000 * SOL)
    raw = wallet.payment(Pubkey.new_unique(), SOL)
    signature = chain.send(raw)
    for _ in range(10):
        chain.send(wallet.payment(Pubkey.new_unique(), SOL))
        chain.advance(14)
    assert chain.history.get(signature) is not None
    assert refusal(chain, raw).error == "AlreadyProcessed"
    chain.advance(50)
    chain.send(wallet.payment(Pubkey.new_unique(), SOL))
    assert chain.history.get(signature) is None
    assert refusal(chain, raw).error == "BlockhashNotFound"


def test_a_blockhash_expires_after_150_blocks(chain, wallet):
    old, last_valid = chain.latest_blockhash()
    chain.advance(150)
    assert chain.height == last_valid
    chain.send(wallet.payment(Pubkey.new_unique(), SOL, old))
    chain.advance(1)
    assert (
        refusal(chain, wallet.payment(Pubkey.new_unique(), SOL, old)).error == "BlockhashNotFound"
    )


def test_an_unknown_blockhash_is_refused(chain, wallet):
    raw = wallet.payment(Pubkey.new_unique(), SOL, Hash.new_unique())
    assert refusal(chain, raw).error == "BlockhashNotFound"
    chain.send(raw, skip_preflight=True)
    assert chain.history.num_landed == 1


def test_a_wrong_signature_is_refused_and_never_lands(chain, wallet):
    good = VersionedTransaction.from_bytes(wallet.payment(Pubkey.new_unique(), SOL))
    forged = bytes(VersionedTransaction.populate(good.message, [Signature.new_unique()]))
    assert refusal(chain, forged).error == "SignatureFailure"
    chain.send(forged, skip_preflight=True)
    assert chain.history.num_landed == 1


def test_an_unfunded_payer_cannot_send(chain):
    key = Keypair()
    blockhash, _ = chain.latest_blockhash()
    raw = bytes(signed([pay(key, Pubkey.new_unique(), 1)], [key], blockhash))
    assert refusal(chain, raw).error == "AccountNotFound"
    chain.airdrop(key.pubkey(), RENT)
    spend = bytes(signed([memo(b"x", key.pubkey())], [key], blockhash))
    assert refusal(chain, spend).error == {"InsufficientFundsForRent": {"account_index": 0}}


def test_an_account_must_end_rent_exempt_or_empty(chain, wallet):
    poor = Pubkey.new_unique()
    outcome = refusal(chain, wallet.payment(poor, RENT - 1))
    assert outcome.error == {"InsufficientFundsForRent": {"account_index": 1}}
    before = wallet.lamports
    signature = chain.send(wallet.payment(poor, RENT - 1), skip_preflight=True)
    assert chain.accounts.get(poor) is None
    assert wallet.lamports == before - 5_000
    assert chain.history.get(signature).outcome.error == outcome.error
    chain.send(wallet.payment(poor, RENT))
    chain.send(wallet.payment(poor, 1))
    assert chain.accounts.balance(poor) == RENT + 1


def test_an_emptied_account_is_gone(chain, wallet):
    chain.send(wallet.payment(Pubkey.new_unique(), wallet.lamports - 5_000))
    assert chain.accounts.get(wallet.pubkey) is None
    assert wallet.pubkey not in dict(chain.accounts.of_program(Pubkey.default()))


def test_an_account_that_its_program_has_closed_can_be_made_anew(chain, wallet):
    """The upgradeable loader leaves four bytes of its own in a closed buffer."""
    program = Keypair().pubkey()
    create = loader.create_buffer(wallet.pubkey, program, 100, SOL)
    buffer = loader.buffer_address(wallet.pubkey, program)
    for _time in range(2):
        chain.send(wallet.transaction(*create))
        chain.advance()
        assert len(chain.accounts.get(buffer).data) == loader.BUFFER_HEADER_BYTES + 100
        chain.send(wallet.transaction(loader.close_buffer(buffer, wallet.pubkey)))
        chain.advance()
        assert chain.accounts.get(buffer) is None


def test_the_owner_index_follows_accounts(chain, wallet):
    new, program = Keypair(), Pubkey.new_unique()
    blockhash, _ = chain.latest_blockhash()
    make = create_account(
        CreateAccountParams(
            from_pubkey=wallet.pubkey,
            to_pubkey=new.pubkey(),
            lamports=chain.minimum_balance(10),
            space=10,
            owner=program,
        )
    )
    assert chain.accounts.of_program(program) == []
    chain.send(bytes(signed([make], [wallet.key, new], blockhash)))
    ((address, account),) = chain.accounts.of_program(program)
    assert address == new.pubkey()
    assert account.data == bytes(10)
    chain.accounts.set(new.pubkey(), Account(SOL, b"", Pubkey.default(), False, 0))
    assert chain.accounts.of_program(program) == []


def test_airdrops_of_the_same_amount_are_distinct_transactions(chain):
    key = Pubkey.new_unique()
    assert len({chain.airdrop(key, SOL) for _ in range(3)}) == 3
    assert chain.accounts.balance(key) == 3 * SOL


@pytest.mark.parametrize("lamports", [0, -1, 1, 2**64])
def test_an_impossible_airdrop_says_what_is_possible(chain, lamports):
    with pytest.raises(AirdropRefusedError, match="Ask for"):
        chain.airdrop(Pubkey.new_unique(), lamports)


def test_accounts_from_lookup_tables_are_resolved(chain, wallet):
    to, table = Pubkey.new_unique(), Pubkey.new_unique()
    put_table(chain, table, [to, Pubkey.new_unique()])
    chain.advance(2)
    blockhash, _ = chain.latest_blockhash()
    transaction = signed_v0(
        [pay(wallet.key, to, SOL)],
        [wallet.key],
        [AddressLookupTableAccount(table, [to])],
        blockhash,
    )
    signature = chain.send(bytes(transaction))
    landed = chain.history.get(signature)
    assert chain.accounts.balance(to) == SOL
    assert landed.keys.loaded_writable == (to,)
    assert [one.signature for one in chain.history.newest_first(to)] == [signature]


@pytest.mark.parametrize(
    ("break_table", "expected"),
    [
        (lambda chain, table: None, "AddressLookupTableNotFound"),
        (
            lambda chain, table: chain.accounts.set(
                table, Account(SOL, bytes(100), Pubkey.default(), False, 0)
            ),
            "InvalidAddressLookupTableOwner",
        ),
        (
            lambda chain, table: chain.accounts.set(
                table, Account(SOL, b"short", LOOKUP_TABLE_PROGRAM, False, 0)
            ),
            "InvalidAddressLookupTableData",
        ),
        (lambda chain, table: put_table(chain, table, []), "InvalidAddressLookupTableIndex"),
    ],
)
def test_a_broken_lookup_table_is_named(chain, wallet, break_table, expected):
    to, table = Pubkey.new_unique(), Pubkey.new_unique()
    break_table(chain, table)
    chain.advance(2)
    transaction = signed_v0(
        [pay(wallet.key, to, SOL)],
        [wallet.key],
        [AddressLookupTableAccount(table, [to])],
        chain.latest_blockhash()[0],
    )
    assert refusal(chain, bytes(transaction)).error == expected


def test_the_vm_sees_slot_clock_and_slot_hashes():
    chain = Chain(ChainConfig(slot_milliseconds=250, skip=skip_every(5)))
    chain.advance(21)
    clock = chain._svm.get_clock()
    assert clock.slot == chain.slot == 22
    assert clock.unix_timestamp == 1_700_000_000 + 22 * 250 // 1_000
    hashes = chain._svm.get_slot_hashes()
    assert hashes[0][0] == 21
    assert [slot for slot, _ in hashes] == [s for s in range(21, -1, -1) if s % 5 != 4]
    assert hashes == chain.blocks.slot_hashes()


def test_equal_configs_and_steps_give_equal_chains():
    def run(seed):
        chain = Chain(ChainConfig(seed=seed))
        chain.airdrop(Pubkey.from_bytes(bytes([7]) * 32), SOL)
        chain.advance(3)
        return chain.blocks.slot_hashes()

    assert run(b"a") == run(b"a")
    assert run(b"a") != run(b"b")


def test_transactions_change_the_slots_hash(chain):
    other = Chain()
    chain.airdrop(Pubkey.new_unique(), SOL)
    for one in (chain, other):
        one.advance(1)
    assert chain.blocks.slot_hashes()[0][1] != other.blocks.slot_hashes()[0][1]


def test_a_simulation_keeps_nothing(chain, wallet):
    to = Pubkey.new_unique()
    before = wallet.lamports
    transaction = VersionedTransaction.from_bytes(wallet.payment(to, SOL))
    outcome = chain.simulate(transaction)
    assert outcome.error is None
    assert outcome.post_accounts[to].lamports == SOL
    assert wallet.lamports == before
    assert chain.accounts.get(to) is None


@pytest.mark.parametrize(
    "image", [b"", b"not an image", b"\x7fELF" + bytes(200), b"\x7fELF" + bytes(44) + b"\3" * 100]
)
def test_a_bad_program_image_is_refused_by_name(chain, image):
    with pytest.raises(ProgramImageError, match="sBPF version 0"):
        chain.add_program(Pubkey.new_unique(), image)
    chain.airdrop(Pubkey.new_unique(), SOL)


@pytest.mark.parametrize("raw", [b"", b"\0", bytes(1_233), b"\xff" * 100])
def test_bytes_that_are_no_transaction_are_refused(chain, raw):
    with pytest.raises(InvalidTransactionError, match="at most 1232"):
        chain.send(raw)


def test_bytes_after_a_transaction_are_refused(chain, wallet):
    with pytest.raises(InvalidTransactionError, match="left over"):
        chain.send(wallet.payment(Pubkey.new_unique(), SOL) + b"\0")


def test_mutated_transactions_never_break_the_chain(chain, wallet):
    """Signatures are looked at before the VM is; simulate lets the VM see what passes."""
    draw = random.Random(1)
    raw = wallet.transaction(pay(wallet.key, Pubkey.new_unique(), SOL), memo(b"m", wallet.pubkey))
    seen = set()
    for _ in range(3_000):
        mutated = bytearray(raw)
        for _ in range(draw.randint(1, 3)):
            mutated[draw.randrange(65, len(mutated))] = draw.randrange(256)
        if bytes(mutated) == raw:
            continue
        try:
            transaction = VersionedTransaction.from_bytes(bytes(mutated))
            transaction.sanitize()
            seen.add(str(chain.simulate(transaction, check_blockhash=False).error)[:20])
            chain.send(bytes(mutated), skip_preflight=True)
        except (ValueError, SanitizeError, InvalidTransactionError) as error:
            seen.add(type(error).__name__)
    assert "None" in seen
    assert len(seen) > 3
    assert chain.send(raw)


def test_programs_can_be_called(chain, wallet):
    signature = chain.send(wallet.transaction(memo(b"hello", wallet.pubkey)))
    landed = chain.history.get(signature)
    assert any("hello" in line for line in landed.outcome.logs)
    assert landed.outcome.compute_units > 100
    assert MEMO in landed.keys.all


def test_a_chain_without_token_programs_runs_everything_else():
    chain = Chain(ChainConfig(has_token_programs=False))
    wallet, to = Wallet(chain), Pubkey.new_unique()
    raw = wallet.transaction(memo(b"hello", wallet.pubkey))
    assert refusal(chain, raw).error == "InvalidProgramForExecution"
    chain.send(wallet.payment(to, SOL))
    assert chain.accounts.balance(to) == SOL
    assert chain.minimum_balance(0) == RENT
