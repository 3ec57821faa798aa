"""Instructions with a wrong account: two runs on one chain, the wrong accounts, and the check.

Owns: what every instruction needs to succeed, and the accounts to try in place of each of its own.
Never: says which instructions there are; the tests list them.
Next: tests/program/test_accounts_swapped.py.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from solders.account import Account
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

from support.program import idl
from support.program.rounds import RoundDriver, key, root_of
from support.program.walk import NEVER
from troth_coordinator.chain import instructions as make
from troth_coordinator.chain.addresses import RunAddresses

OTHER_RUN = b"o" * 32
THIEF = key("thief program").pubkey()
SYSVAR_CLOCK = Pubkey.from_string("SysvarC1ock11111111111111111111111111111111")


@dataclass(frozen=True)
class Case:
    """One instruction that succeeds as it stands, and who signs it."""

    instruction: Instruction
    signer: Keypair


class TwoRuns:
    """Two runs on one chain, and the wrong accounts to try."""

    def __init__(self) -> None:
        self.driver = driver = RoundDriver(5, min_members=2, checkpoint_every=1)
        driver.chain.airdrop(key("stranger").pubkey(), 10**9)
        self._open_other_run()
        # Four members; the fifth stays pending until it posts ready.
        driver.advance_phase()
        for index in range(4):
            driver.post_ready(index)
        driver.run_out()
        driver.advance_phase()
        driver.play(2)
        driver.chain.advance(5)
        self.cases = dict(self._cases())
        self.wrong = self._wrong()

    def drive(self, name: str) -> Case:
        """Bring the run to where this instruction succeeds."""
        if name in self.cases:
            return self.cases[name]
        step: Callable[..., Case] = getattr(self, f"_until_{name}")
        return step(self.driver, self.driver.at, self.driver.cranker)

    def _until_resume_run(self, driver: RoundDriver, at: RunAddresses, _: Keypair) -> Case:
        boss = driver.authority
        driver.send(make.pause_run(at, boss.pubkey()), boss)
        driver.play()
        return Case(make.resume_run(at, boss.pubkey(), driver.run.round), boss)

    def _until_withdraw_stake(self, driver: RoundDriver, at: RunAddresses, _: Keypair) -> Case:
        owner = driver.owners[0]
        driver.send(make.leave_run(at, owner.pubkey()), owner)
        driver.chain.advance(driver.params.unbond_slots)
        return Case(make.withdraw_stake(at, owner.pubkey(), 0), owner)

    def _until_claim_reward(self, driver: RoundDriver, at: RunAddresses, _: Keypair) -> Case:
        driver.chain.advance(5_000)
        return Case(make.claim_reward(at, driver.owners[0].pubkey()), driver.owners[0])

    def _until_activate(self, driver: RoundDriver, at: RunAddresses, cranker: Keypair) -> Case:
        round_ = driver.run.round
        driver.post_ready(4)
        driver.play()
        return Case(make.activate(at, cranker.pubkey(), 4, round_), cranker)

    def _until_retarget_seed(self, driver: RoundDriver, at: RunAddresses, cranker: Keypair) -> Case:
        driver.chain.advance(600)
        return Case(make.retarget_seed(at, cranker.pubkey(), 0), cranker)

    def _until_advance_phase(self, driver: RoundDriver, _: RunAddresses, cranker: Keypair) -> Case:
        for index in range(4):
            driver.commit(index)
        return Case(driver.tick_instruction(), cranker)

    def _until_attest(self, driver: RoundDriver, _: RunAddresses, __: Keypair) -> Case:
        driver.commit_all()
        return Case(driver.attest_instruction(0), driver.sessions[0])

    def _until_close_void(self, driver: RoundDriver, at: RunAddresses, cranker: Keypair) -> Case:
        driver.commit_all()
        driver.run_out()
        driver.chain.advance(driver.params.close_grace_slots)
        return Case(make.close_void(at, cranker.pubkey(), driver.run.round), cranker)

    def _until_close_round(self, driver: RoundDriver, _: RunAddresses, cranker: Keypair) -> Case:
        driver.commit_all()
        driver.attest_all()
        return Case(driver.close_instruction(), cranker)

    def _open_other_run(self) -> None:
        driver, authority = self.driver, self.driver.cranker
        payer, ring = authority.pubkey(), driver.params.ring
        self.other = RunAddresses.create(payer, OTHER_RUN, ring, driver.at.program)
        terms = make.RunTerms(OTHER_RUN, b"c" * 32, b"m" * 32, root_of(0), payer, driver.params)
        built = [make.create_run(self.other, payer, terms)]
        built += [make.init_roster(self.other, payer) for _ in range(3)]
        for instruction in (built, make.init_round(self.other, payer, 0)):
            many = instruction if isinstance(instruction, list) else [instruction]
            driver.chain.send(driver._signed(many, [authority]))
        owner = driver.owners[0]
        place = make.JoinTerms(0, 3, driver.sessions[0].pubkey(), "")
        join = make.join_run(self.other, owner.pubkey(), place)
        driver.chain.send(driver._signed(join, [owner]))

    def _cases(self) -> Iterator[tuple[str, Case]]:
        driver, at, authority = self.driver, self.driver.at, self.driver.authority
        owner, session = driver.owners[0], driver.sessions[0]
        me, cranker, boss = owner.pubkey(), driver.cranker, authority.pubkey()
        new = key("new owner")
        driver.chain.airdrop(new.pubkey(), 10**9)
        join = make.join_run(at, new.pubkey(), make.JoinTerms(5, 3, new.pubkey(), ""))
        manifest = make.Manifest(1, b"m" * 32, "u")
        yield "fund_run", Case(make.fund_run(at, boss, 1), authority)
        yield "pause_run", Case(make.pause_run(at, boss), authority)
        params = driver.run.params
        yield "update_params", Case(make.update_params(at, boss, params), authority)
        yield "join_run", Case(join, new)
        yield "top_up_stake", Case(make.top_up_stake(at, me, 1), owner)
        fresh = key("fresh").pubkey()
        yield "set_session_key", Case(make.set_session_key(at, me, fresh), owner)
        yield "set_endpoint", Case(make.set_endpoint(at, me, "http://b:1"), owner)
        yield "leave_run", Case(make.leave_run(at, me), owner)
        announce = make.announce_manifest(at, session.pubkey(), me, 0, manifest)
        yield "announce_manifest", Case(announce, session)
        yield "commit_payload", Case(driver.commit_instruction(0), session)
        yield "freeze_seed", Case(make.freeze_seed(at, cranker.pubkey(), 0), cranker)
        missing = make.report_missing(at, session.pubkey(), 0, 1, 1)
        yield "report_missing", Case(missing, session)
        vote = driver.vote(4, driver.run.round, root_of(driver.run.round))
        late = driver.sessions[4]
        ready = make.post_ready(at, late.pubkey(), 4, driver.run.round, vote)
        yield "post_ready", Case(ready, late)

    def _wrong(self) -> dict[str, Pubkey]:
        """Accounts of every type of this run and of the other, copies, and empty addresses."""
        driver, at, other = self.driver, self.driver.at, self.other
        owners = [owner.pubkey() for owner in driver.owners]
        found = {
            "run": at.run,
            "roster": at.roster,
            "vault": at.vault,
            "round of another position": at.round(7),
            "checkpoint": at.checkpoint(1),
            "participant": at.participant(owners[1]),
            "other run": other.run,
            "other roster": other.roster,
            "other vault": other.vault,
            "other round": other.round(0),
            "other participant": other.participant(owners[0]),
            "clock": SYSVAR_CLOCK,
            "nothing": key("nothing").pubkey(),
        }
        for name in ("run", "roster", "vault"):
            found[f"copy of {name}"] = self._copy(found[name])
        found["copy of round"] = self._copy(at.round(driver.run.round))
        found["copy of participant"] = self._copy(at.participant(owners[0]))
        return found

    def _copy(self, of: Pubkey) -> Pubkey:
        """The same bytes at another address, owned by another program."""
        account = self.driver.chain.accounts.get(of)
        assert account is not None, of
        address = key("copy", str(of)).pubkey()
        copy = Account(account.lamports, bytes(account.data), THIEF)
        self.driver.chain.accounts.set(address, copy)
        return address


def swapped(instruction: Instruction, place: int, address: Pubkey) -> Instruction:
    """The same instruction with another account in this place."""
    metas = list(instruction.accounts)
    old = metas[place]
    metas[place] = AccountMeta(address, old.is_signer, old.is_writable)
    return Instruction(instruction.program_id, bytes(instruction.data), metas)


# Tested in test_audit_accounts.py and test_case_accounts.py, on a run with audits.
AUDITS = [
    *("request_audit", "open_audit", "post_openings", "commit_verdict", "reveal_verdict"),
    *("extend_audit", "settle_audit"),
]
CASES = [
    *("open_case", "draw_jury", "vote_case", "settle_case", "appeal_case"),
    *("reverse_case", "release_escrow"),
]
# Optional, and not read by this instruction as it stands.
UNUSED = {("join_run", "previous"), ("settle_audit", "challenger")}
UNUSED |= {("settle_case", "challenger"), ("release_escrow", "challenger")}
# A panic, or a check behind the ones that should have refused.
WRONG_ENDS = {*NEVER, "ProgramFailedToComplete"}


def check(runs: TwoRuns, name: str) -> None:
    """No account of this instruction can be another one, and no signature may be missing."""
    case, driver = runs.drive(name), runs.driver
    # As it stands the instruction succeeds, so that each refusal below is due to the swap.
    raw = driver._signed(case.instruction, [case.signer])
    reported = driver.chain.simulate(VersionedTransaction.from_bytes(raw))
    assert reported.error is None, reported.logs
    for place, slot in enumerate(idl.INSTRUCTIONS[name]["accounts"]):
        if slot.get("signer") or (name, slot["name"]) in UNUSED:
            continue
        for what, address in runs.wrong.items():
            if address == case.instruction.accounts[place].pubkey:
                continue
            wrong = swapped(case.instruction, place, address)
            assert driver.refused(wrong, case.signer) not in WRONG_ENDS, (slot["name"], what)
    for place, slot in enumerate(idl.INSTRUCTIONS[name]["accounts"]):
        if not slot.get("signer"):
            continue
        silent = case.instruction.accounts[place].pubkey
        metas = [
            AccountMeta(meta.pubkey, meta.is_signer and meta.pubkey != silent, meta.is_writable)
            for meta in case.instruction.accounts
        ]
        unsigned = Instruction(case.instruction.program_id, bytes(case.instruction.data), metas)
        stranger = key("stranger")
        assert driver.refused(unsigned, stranger) == "Custom(3010)"  # AccountNotSigner


def exchanged(made: Instruction, old: Pubkey, new: Pubkey) -> Instruction:
    """The same instruction with one account exchanged."""
    metas = [
        AccountMeta(new, meta.is_signer, meta.is_writable) if meta.pubkey == old else meta
        for meta in made.accounts
    ]
    assert metas != made.accounts
    return Instruction(made.program_id, made.data, metas)
