"""From names and addresses to a solders Instruction, as the program's IDL orders them.

Owns: the account list with its flags, accounts behind the list, and addresses that an account on
chain recorded.
Never: knows a single instruction; the generated builders do.
Next: builders/ for one function per instruction; codec.py for the bytes of the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from solders.instruction import AccountMeta, Instruction
from solders.pubkey import Pubkey

from troth_coordinator.chain.addresses import RunAddresses, event_authority_address
from troth_coordinator.chain.codec import AccountSlot, program_codec
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.rules.audit_view import AuditView


def build(
    at: RunAddresses, name: str, args: Mapping[str, object], **keys: Pubkey | None
) -> Instruction:
    """Encode the arguments and lay the accounts out as the IDL says.

    Run, roster, vault and constant addresses fill in by themselves. An optional account that is
    absent is the program id, which is how Anchor spells None. Raises ArtifactError for values that
    do not fit the IDL.
    """
    codec = program_codec()
    spec = codec.instructions[name]
    metas = [_meta(at, name, slot, keys.get(slot.name)) for slot in spec.accounts]
    return Instruction(at.program, codec.instruction_data(name, args), metas)


def with_accounts(built: Instruction, writable: Sequence[Pubkey]) -> Instruction:
    """Return the instruction with writable accounts behind those that the IDL names."""
    rest = [AccountMeta(key, is_signer=False, is_writable=True) for key in writable]
    return Instruction(built.program_id, built.data, [*built.accounts, *rest])


def with_participants(
    built: Instruction, at: RunAddresses, owners: Sequence[Pubkey]
) -> Instruction:
    """Return the instruction with the Participant accounts of these owners behind the others."""
    return with_accounts(built, [at.participant(owner) for owner in owners])


def payer_of(audit: AuditView) -> Pubkey:
    """Return the key that paid the rent of an audit."""
    return Pubkey.from_bytes(audit.payer)


def challenger_of(audit: AuditView) -> Pubkey:
    """Return the key that paid in advance or posted the bond."""
    return Pubkey.from_bytes(audit.challenger)


def rewarded_challenger_of(audit: AuditView) -> Pubkey | None:
    """Return the challenger whom the end of the escrow pays, or None."""
    is_paid = audit.escrow > 0 and any(audit.challenger)
    return challenger_of(audit) if is_paid else None


def _meta(at: RunAddresses, name: str, slot: AccountSlot, given: Pubkey | None) -> AccountMeta:
    key = given or _of_run(at, slot.name) or slot.address
    if key is not None:
        return AccountMeta(key, is_signer=slot.signer, is_writable=slot.writable)
    if slot.optional:
        return AccountMeta(at.program, is_signer=False, is_writable=False)
    raise ArtifactError(
        f"instruction {name}",
        f"an address for the account {slot.name}",
        "none: the IDL names an account that this package does not know",
        "reinstall troth",
    )


def _of_run(at: RunAddresses, name: str) -> Pubkey | None:
    """Return an address that follows from run and program, also where the IDL has a constant.

    The constants of the IDL are those of the packaged program, and `at` may name another.
    """
    if name in ("run", "roster", "vault", "program"):
        found: Pubkey = getattr(at, name)
        return found
    return event_authority_address(at.program) if name == "event_authority" else None
