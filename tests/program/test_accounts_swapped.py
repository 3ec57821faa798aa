"""Every account of every instruction, swapped for one of another type, owner or run.

The attacker passes an account that looks right: another run's roster, a round as a roster, a
copy under another program, an account that does not exist. No instruction may accept one, and
none may end with anything but a refusal.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from program import harness
from program.rounds import Stage, key, root_of
from program.walk import NEVER
from solders.account import Account
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.transaction import VersionedTransaction

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


class Scene:
    """Two runs on one chain, and the wrong accounts to try."""

    def __init__(self) -> None:
        self.stage = stage = Stage(5, min_members=2, checkpoint_every=1)
        stage.chain.airdrop(key("stranger").pubkey(), 10**9)
        self._open_other_run()
        # Four members; the fifth stays pending until it posts ready.
        stage.tick()
        for index in range(4):
            stage.ready(index)
        stage.run_out()
        stage.tick()
        stage.play(2)
        stage.chain.advance(5)
        self.cases = dict(self._cases())
        self.wrong = self._wrong()

    def drive(self, name: str) -> Case:
        """Bring the run to where this instruction succeeds."""
        if name in self.cases:
            return self.cases[name]
        step = getattr(self, f"_until_{name}")
        return step(self.stage, self.stage.at, self.stage.cranker)

    def _until_resume_run(self, stage: Stage, at: RunAddresses, _: Keypair) -> Case:
        boss = stage.authority
        stage.send(make.pause_run(at, boss.pubkey()), boss)
        stage.play()
        return Case(make.resume_run(at, boss.pubkey(), stage.run.round), boss)

    def _until_withdraw_stake(self, stage: Stage, at: RunAddresses, _: Keypair) -> Case:
        owner = stage.owners[0]
        stage.send(make.leave_run(at, owner.pubkey()), owner)
        stage.chain.advance(stage.params.unbond_slots)
        return Case(make.withdraw_stake(at, owner.pubkey(), 0), owner)

    def _until_claim_reward(self, stage: Stage, at: RunAddresses, _: Keypair) -> Case:
        stage.chain.advance(5_000)
        return Case(make.claim_reward(at, stage.owners[0].pubkey()), stage.owners[0])

    def _until_activate(self, stage: Stage, at: RunAddresses, cranker: Keypair) -> Case:
        round_ = stage.run.round
        stage.ready(4)
        stage.play()
        return Case(make.activate(at, cranker.pubkey(), 4, round_), cranker)

    def _until_retarget(self, stage: Stage, at: RunAddresses, cranker: Keypair) -> Case:
        stage.chain.advance(600)
        return Case(make.retarget(at, cranker.pubkey(), 0), cranker)

    def _until_tick(self, stage: Stage, _: RunAddresses, cranker: Keypair) -> Case:
        for index in range(4):
            stage.commit(index)
        return Case(stage.tick_instruction(), cranker)

    def _until_attest(self, stage: Stage, _: RunAddresses, __: Keypair) -> Case:
        stage.commit_all()
        return Case(stage.attest_instruction(0), stage.sessions[0])

    def _until_close_void(self, stage: Stage, at: RunAddresses, cranker: Keypair) -> Case:
        stage.commit_all()
        stage.run_out()
        stage.chain.advance(stage.params.close_grace_slots)
        return Case(make.close_void(at, cranker.pubkey(), stage.run.round), cranker)

    def _until_close_round(self, stage: Stage, _: RunAddresses, cranker: Keypair) -> Case:
        stage.commit_all()
        stage.attest_all()
        return Case(stage.close_instruction(), cranker)

    def _open_other_run(self) -> None:
        stage, authority = self.stage, self.stage.cranker
        self.other = RunAddresses.create(OTHER_RUN, stage.params.ring, stage.at.program)
        payer = authority.pubkey()
        terms = make.RunTerms(OTHER_RUN, b"c" * 32, b"m" * 32, root_of(0), payer, stage.params)
        built = [make.create_run(self.other, payer, terms)]
        built += [make.init_roster(self.other, payer) for _ in range(3)]
        for instruction in (built, make.init_round(self.other, payer, 0)):
            many = instruction if isinstance(instruction, list) else [instruction]
            stage.chain.send(stage._signed(many, [authority]))
        owner = stage.owners[0]
        terms = make.JoinTerms(0, 3, stage.sessions[0].pubkey(), "")
        join = make.join_run(self.other, owner.pubkey(), terms)
        stage.chain.send(stage._signed(join, [owner]))

    def _cases(self) -> Iterator[tuple[str, Case]]:
        stage, at, authority = self.stage, self.stage.at, self.stage.authority
        owner, session = stage.owners[0], stage.sessions[0]
        me, cranker, boss = owner.pubkey(), stage.cranker, authority.pubkey()
        new = key("new owner")
        stage.chain.airdrop(new.pubkey(), 10**9)
        join = make.join_run(at, new.pubkey(), make.JoinTerms(5, 3, new.pubkey(), ""))
        manifest = make.Manifest(1, b"m" * 32, "u")
        yield "fund_run", Case(make.fund_run(at, boss, 1), authority)
        yield "pause_run", Case(make.pause_run(at, boss), authority)
        params = stage.run.params
        yield "update_params", Case(make.update_params(at, boss, params), authority)
        yield "join_run", Case(join, new)
        yield "top_up_stake", Case(make.top_up_stake(at, me, 1), owner)
        fresh = key("fresh").pubkey()
        yield "set_session_key", Case(make.set_session_key(at, me, fresh), owner)
        yield "leave_run", Case(make.leave_run(at, me), owner)
        announce = make.announce_manifest(at, session.pubkey(), me, 0, manifest)
        yield "announce_manifest", Case(announce, session)
        yield "commit_payload", Case(stage.commit_instruction(0), session)
        yield "freeze_seed", Case(make.freeze_seed(at, cranker.pubkey(), 0), cranker)
        missing = make.report_missing(at, session.pubkey(), 0, 1, 1)
        yield "report_missing", Case(missing, session)
        vote = stage.vote(4, stage.run.round, root_of(stage.run.round))
        late = stage.sessions[4]
        ready = make.ready(at, late.pubkey(), 4, stage.run.round, vote)
        yield "ready", Case(ready, late)

    def _wrong(self) -> dict[str, Pubkey]:
        """Accounts of every type of this run and of the other, copies, and empty addresses."""
        stage, at, other = self.stage, self.stage.at, self.other
        owners = [owner.pubkey() for owner in stage.owners]
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
        found["copy of round"] = self._copy(at.round(stage.run.round))
        found["copy of participant"] = self._copy(at.participant(owners[0]))
        return found

    def _copy(self, of: Pubkey) -> Pubkey:
        """The same bytes at another address, owned by another program."""
        account = self.stage.chain.accounts.get(of)
        address = key("copy", str(of)).pubkey()
        copy = Account(account.lamports, bytes(account.data), THIEF)
        self.stage.chain.accounts.set(address, copy)
        return address


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


def swapped(instruction: Instruction, place: int, address: Pubkey) -> Instruction:
    metas = list(instruction.accounts)
    old = metas[place]
    metas[place] = AccountMeta(address, old.is_signer, old.is_writable)
    return Instruction(instruction.program_id, bytes(instruction.data), metas)


SHARED = [
    *("fund_run", "pause_run", "update_params", "join_run", "top_up_stake", "set_session_key"),
    *("leave_run", "announce_manifest", "commit_payload", "freeze_seed", "report_missing"),
    "ready",
]
DRIVEN = [
    *("resume_run", "withdraw_stake", "claim_reward", "activate", "retarget", "tick", "attest"),
    *("close_void", "close_round"),
]
# Tested in test_audit_accounts.py and test_case_accounts.py, on a run with audits.
AUDITS = [
    *("request_audit", "open_audit", "post_openings", "commit_verdict", "reveal_verdict"),
    *("extend_audit", "settle_audit"),
]
CASES = [
    *("open_case", "draw_committee", "vote_case", "settle_case", "appeal_case"),
    *("resolve_appeal", "release_escrow"),
]
# Tested in test_create.py, test_join.py and test_close_run.py: they take accounts that do not exist
# yet, or lists.
ELSEWHERE = ["create_run", "init_roster", "init_round", "admit", "close_run"]
# Optional, and not read by this instruction as it stands.
UNUSED = {("join_run", "previous"), ("settle_audit", "challenger")}
UNUSED |= {("settle_case", "challenger"), ("release_escrow", "challenger")}

# A panic, or a check behind the ones that should have refused.
WRONG_ENDS = {*NEVER, "ProgramFailedToComplete"}


def test_every_instruction_has_its_place():
    assert sorted(SHARED + DRIVEN + AUDITS + CASES + ELSEWHERE) == sorted(harness.INSTRUCTIONS)


def check(scene: Scene, name: str) -> None:
    case, stage = scene.drive(name), scene.stage
    # As it stands the instruction succeeds, so that each refusal below is due to the swap.
    raw = stage._signed(case.instruction, [case.signer])
    told = stage.chain.simulate(VersionedTransaction.from_bytes(raw))
    assert told.error is None, told.logs
    for place, slot in enumerate(harness.INSTRUCTIONS[name]["accounts"]):
        if slot.get("signer") or (name, slot["name"]) in UNUSED:
            continue
        for what, address in scene.wrong.items():
            if address == case.instruction.accounts[place].pubkey:
                continue
            wrong = swapped(case.instruction, place, address)
            assert stage.refused(wrong, case.signer) not in WRONG_ENDS, (slot["name"], what)
    for place, slot in enumerate(harness.INSTRUCTIONS[name]["accounts"]):
        if not slot.get("signer"):
            continue
        silent = case.instruction.accounts[place].pubkey
        metas = [
            AccountMeta(meta.pubkey, meta.is_signer and meta.pubkey != silent, meta.is_writable)
            for meta in case.instruction.accounts
        ]
        unsigned = Instruction(case.instruction.program_id, bytes(case.instruction.data), metas)
        stranger = key("stranger")
        assert stage.refused(unsigned, stranger) == "Custom(3010)"  # AccountNotSigner


@pytest.mark.parametrize("name", SHARED)
def test_no_wrong_account_is_accepted(scene, name):
    check(scene, name)


@pytest.mark.parametrize("name", DRIVEN)
def test_no_wrong_account_is_accepted_later(name):
    check(Scene(), name)
