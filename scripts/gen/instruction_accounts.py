"""Tables for the instruction builders: the address of each account, and the records they take.

Owns: the hand-written part of scripts/gen/instructions.py: tables, and the rule that reads them.
Never: writes a file.
Next: instructions.py, which turns an IDL entry and these tables into a function.

A new instruction needs a place in TOPICS; a new account name is a key that the caller passes,
unless a table below says how to derive it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Entry = Mapping[str, Any]
INTEGERS = {f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)}
DIGEST_BYTES = 32

PERSON, READ_AUDIT, ARGUMENT, SELECTOR, OPTIONAL, KEYWORD = range(6)
"""Ranks of parameters: the order in which a function takes them."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function. note: what the docstring says of it."""

    name: str
    kind: str
    rank: int = ARGUMENT
    default: str = ""
    note: str = ""

    @classmethod
    def of_argument(cls, name: str, kind: str | Entry) -> Parameter:
        """Return the parameter for an argument of the program."""
        spelled = "round_" if name == "round" else name
        if isinstance(kind, str):
            simple = {"pubkey": "Pubkey", "string": "str", "bool": "bool"}
            return cls(spelled, "int" if kind in INTEGERS else simple[kind])
        ((form, inner),) = kind.items()
        if form == "array" and inner[0] == "u8":
            note = "" if inner[1] == DIGEST_BYTES else f"{inner[1]} bytes."
            return cls(spelled, "bytes", note=note)
        if form == "defined" and inner["name"] == "Params":
            return cls(spelled, "ParamsView")
        raise SystemExit(
            f"argument {name} of type {kind}: teach scripts/gen/instruction_accounts.py"
        )

    @property
    def is_person(self) -> bool:
        """Whether it is a key that the caller passes for an account."""
        return self.rank == PERSON

    @property
    def declaration(self) -> str:
        """The parameter as a signature declares it."""
        mark = "*, " if self.rank == KEYWORD else ""
        end = f" = {self.default}" if self.default else ""
        return f"{mark}{self.name}: {self.kind}{end}"


class Source(NamedTuple):
    """The origin of an account's address."""

    expression: str
    parameters: tuple[Parameter, ...] = ()


class Record(NamedTuple):
    """Several arguments in one parameter: its name and type, and the value of each argument."""

    name: str
    kind: str
    values: Mapping[str, str]


class More(NamedTuple):
    """Accounts behind those that the IDL names: the parameter, and what is done with it."""

    parameter: Parameter
    expression: str


class Topic(NamedTuple):
    """One generated module: its first sentence, the module that callers import, its contents."""

    title: str
    face: str
    instructions: tuple[str, ...]


TOPICS = {
    "life": Topic(
        "Instructions of the authority and of owners.",
        "instructions",
        (
            *("create_run", "init_roster", "init_round", "admit", "fund_run", "pause_run"),
            *("resume_run", "update_params", "close_run", "join_run", "top_up_stake"),
            *("set_session_key", "set_endpoint", "leave_run", "withdraw_stake", "claim_reward"),
        ),
    ),
    "rounds": Topic(
        "Instructions of rounds and seeds.",
        "instructions",
        (
            *("post_ready", "commit_payload", "attest", "report_missing", "announce_manifest"),
            *("activate", "advance_phase", "close_round", "close_void"),
            *("freeze_seed", "retarget_seed"),
        ),
    ),
    "audits": Topic(
        "Instructions of audits, from the sample to the outcome.",
        "audit_instructions",
        (
            *("open_audit", "request_audit", "post_openings", "commit_verdict"),
            *("reveal_verdict", "extend_audit", "settle_audit"),
        ),
    ),
    "cases": Topic(
        "Instructions of cases, from an accusation to the end of the escrow.",
        "case_instructions",
        (
            *("open_case", "draw_jury", "vote_case", "settle_case", "appeal_case"),
            *("reverse_case", "release_escrow"),
        ),
    ),
}
"""Every instruction of the program, by the module that it goes into."""

AUTOMATIC = ("run", "roster", "vault")
"""Accounts that `build` finds by itself, as it does those with a constant address."""

_OWNER = Parameter("owner", "Pubkey", PERSON)
_FORMER = Parameter(
    *("former_owner", "Pubkey | None", OPTIONAL, "None"),
    note="the owner that held the index before, if any.",
)
_AUDIT = Parameter("audit", "AuditView", READ_AUDIT)
_READ_AUDIT = Source("at.audit(*audit.key)", (_AUDIT,))
_ROUND = Parameter("round_", "int", SELECTOR, note="`run.round`.")

BY_NAME = {
    "next_round": Source("at.round(round_ + 1)"),
    "participant": Source("at.participant(owner)", (_OWNER,)),
    "previous": Source(
        "None if former_owner is None else at.participant(former_owner)", (_FORMER,)
    ),
}
"""Accounts whose address is found in the same way wherever their name occurs."""

BY_INSTRUCTION = {
    ("init_round", "round"): Source("at.position(position)"),
    ("activate", "round"): Source(
        "at.round(ready_round)",
        (Parameter("ready_round", "int", SELECTOR, note="the `ready_round` of the roster entry."),),
    ),
    ("report_missing", "current_round"): Source(
        "at.round(round_ + 1 if open_round is None else open_round)",
        (
            Parameter(
                *("open_round", "int | None", OPTIONAL, "None"),
                note="`run.round`; by default the round after `round_`.",
            ),
        ),
    ),
    ("announce_manifest", "checkpoint"): Source("at.checkpoint(manifest.round)"),
    ("close_round", "checkpoint"): Source(
        "at.checkpoint(round_) if with_checkpoint else None",
        (
            Parameter(
                *("with_checkpoint", "bool", KEYWORD),
                note="whether a checkpoint is due at this close (`is_checkpoint_due`).",
            ),
        ),
    ),
    ("withdraw_stake", "payer"): Source(
        "payer or owner",
        (
            Parameter(
                *("payer", "Pubkey | None", OPTIONAL, "None"),
                note="the key that paid the participant's rent, if not the owner.",
            ),
        ),
    ),
    ("post_openings", "payer"): Source("session"),
    ("open_case", "round"): Source("at.round(claim.round)"),
    ("open_case", "audit"): Source("at.audit(claim.round, claim.target, claim.kind)"),
    ("settle_audit", "challenger"): Source("challenger_of(audit) if audit.prepaid else None"),
    ("settle_case", "challenger"): Source("challenger_of(audit) if audit.bond else None"),
    ("release_escrow", "challenger"): Source("rewarded_challenger_of(audit)"),
    ("release_escrow", "payer"): Source("payer_of(audit)"),
}
"""Accounts of one instruction that are found in a way of their own."""

RECORDS = {
    "create_run": Record("terms", "RunTerms", {"args": "terms"}),
    "join_run": Record("terms", "JoinTerms", {"args": "terms"}),
    "announce_manifest": Record(
        *("manifest", "Manifest"),
        {"round": "manifest.round", "manifest_hash": "manifest.hash", "uri": "manifest.uri"},
    ),
    "reveal_verdict": Record(
        *("shown", "Reveal"),
        {name: f"shown.{name}" for name in ("verdict", "evidence", "sketch", "salt")},
    ),
    "open_case": Record(
        *("claim", "Claim"),
        {name: f"claim.{name}" for name in ("round", "target", "kind", "subject")},
    ),
    "vote_case": Record(
        *("vote", "JurorVote"),
        {name: f"vote.{name}" for name in ("verdict", "hash", "sketch", "salt")},
    ),
}
"""Instructions that take several arguments in one record of terms.py."""

_PAIRS = More(
    Parameter(
        *("pairs", "Sequence[tuple[Pubkey, Pubkey]]", OPTIONAL, "()"),
        note="accounts to close, each with its recorded payer.",
    ),
    "with_accounts({built}, [key for pair in pairs for key in pair])",
)
_PEOPLE = More(
    Parameter(
        *("people", "Sequence[Pubkey]", OPTIONAL, "()"),
        note="owners who may be penalised beyond their stake, or barred.",
    ),
    "with_participants({built}, at, people)",
)
MORE_ACCOUNTS = {
    "close_run": (_PAIRS,),
    "settle_audit": (_PEOPLE,),
    "settle_case": (_PEOPLE,),
    "release_escrow": (_PEOPLE,),
}
"""Instructions that take accounts behind those that the IDL names."""

NOTES = {
    ("post_ready", "round_"): "the round that the participant would train in.",
    ("post_ready", "vote"): "root_vote(run, round, owner, root) of the weights it would train on.",
    ("commit_payload", "header_hash"): "in Cooldown zeros.",
    ("report_missing", "round_"): "`base_round` of the open round.",
}
"""Sentences about parameters that neither the name nor the IDL explains."""


def account_source(entry: Entry, name: str) -> Source:
    """Return where the address of an instruction's account comes from.

    An account that no table and none of the rules below names is a key that the caller passes.
    """
    arguments = {str(argument["name"]) for argument in entry["args"]}
    places = {str(account["name"]) for account in entry["accounts"]}
    special = BY_INSTRUCTION.get((entry["name"], name)) or BY_NAME.get(name)
    if special is not None:
        return special
    if name == "audit":
        of_target = {"round", "target"} <= arguments
        return Source("at.audit(round_, target)") if of_target else _READ_AUDIT
    if name == "round" and "round" in arguments:
        return Source("at.round(round_)")
    if name == "round" and "audit" in places:
        return Source("at.round(audit.round)", (_AUDIT,))
    if name == "round":
        return Source("at.round(round_)", (_ROUND,))
    return Source(name, (Parameter(name, "Pubkey", PERSON),))
