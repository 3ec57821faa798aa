import pytest
from solders.compute_budget import set_compute_unit_limit, set_compute_unit_price
from solders.hash import Hash
from solders.instruction import Instruction
from solders.keypair import Keypair
from solders.message import Message
from solders.pubkey import Pubkey
from support.localnet import SOL, Wallet, memo, pay

from troth_localnet.errors import RefusedTransactionError
from troth_localnet.fees import priority_fee, signature_fee, unit_price
from troth_localnet.svm import Chain

PAYER = Keypair()


def message(*instructions):
    return Message.new_with_blockhash(instructions, PAYER.pubkey(), Hash.default())


@pytest.mark.parametrize(
    ("instructions", "lamports"),
    [
        ([], 0),
        ([set_compute_unit_price(1_000_000)], 3_000),
        ([set_compute_unit_limit(1), set_compute_unit_price(1)], 1),
        ([set_compute_unit_limit(20_000), set_compute_unit_price(10_000)], 200),
        ([set_compute_unit_limit(2_000_000), set_compute_unit_price(1_000_000)], 1_400_000),
        ([set_compute_unit_price(1_000_000), memo(b"", PAYER.pubkey())], 203_000),
    ],
)
def test_the_priority_fee_is_charged_on_the_limit(instructions, lamports):
    assert priority_fee(message(*instructions)) == lamports


def test_signature_fee_counts_signers():
    assert signature_fee(message(pay(PAYER, Pubkey.new_unique(), 1))) == 5_000


def test_unit_price_is_read():
    assert unit_price(message(set_compute_unit_price(77))) == 77


def test_the_chain_takes_the_priority_fee_on_success_and_failure():
    chain = Chain()
    wallet = Wallet(chain)
    budget = [set_compute_unit_limit(100_000), set_compute_unit_price(50_000)]
    for lamports, moved in ((SOL, SOL), (10**15, 0)):
        before = wallet.lamports
        raw = wallet.transaction(*budget, pay(wallet.key, Pubkey.new_unique(), lamports))
        landed = chain.history.get(chain.send(raw, skip_preflight=True))
        assert landed.fee_lamports == 5_000 + 5_000
        assert wallet.lamports == before - moved - 10_000


def test_a_refused_transaction_gets_its_priority_fee_back():
    chain = Chain()
    wallet = Wallet(chain)
    before = wallet.lamports
    budget = [set_compute_unit_limit(100_000), set_compute_unit_price(50_000)]
    with pytest.raises(RefusedTransactionError):
        chain.send(wallet.transaction(*budget, pay(wallet.key, Pubkey.new_unique(), 10**15)))
    assert wallet.lamports == before


def test_a_fee_beyond_the_balance_is_refused():
    chain = Chain()
    wallet = Wallet(chain, SOL)
    budget = [set_compute_unit_limit(1_400_000), set_compute_unit_price(10**9)]
    with pytest.raises(RefusedTransactionError) as caught:
        chain.send(wallet.transaction(*budget))
    assert caught.value.outcome.error == "InsufficientFundsForFee"


def test_a_transaction_that_cannot_land_costs_nothing():
    """A program that does not exist: LiteSVM turns it away before taking any fee."""
    chain = Chain()
    wallet = Wallet(chain)
    before = wallet.lamports
    budget = [set_compute_unit_limit(100_000), set_compute_unit_price(50_000)]
    raw = wallet.transaction(*budget, Instruction(Pubkey.new_unique(), b"", []))
    signature = chain.send(raw, skip_preflight=True)
    assert chain.history.get(signature) is None
    assert wallet.lamports == before
