"""Account bytes to views: every field lands where it belongs, and nothing foreign is accepted."""

import copy
import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.pubkey import Pubkey

from troth_coordinator import artifacts
from troth_coordinator.chain.accounts import AccountReader
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import (
    AccountError,
    AccountOwnerError,
    AccountSizeError,
    AccountTypeError,
    AccountValueError,
    AccountVersionError,
    ArtifactError,
    ChainError,
)
from troth_coordinator.chain.layouts import program_layout, read_layout
from troth_coordinator.chain.records import form_of
from troth_coordinator.chain.rpc import Account
from troth_coordinator.rules import ids
from troth_coordinator.rules.audit_view import AuditFlag, AuditKind, AuditStage, SeatFlag
from troth_coordinator.rules.params_view import Admission
from troth_coordinator.rules.phase import Phase
from troth_coordinator.rules.view import (
    EntryFlag,
    Role,
    RoundFlag,
    RunFlag,
    SeedStatus,
    Status,
)

LAYOUT = program_layout()
READER = AccountReader(LAYOUT, program_codec())
ADDRESS = Pubkey.from_bytes(bytes(range(32)))
# Enum fields cannot hold any number: phase, resume_phase, status, seed_status, admission.
SMALL = {"phase", "resume_phase", "status", "seed_status", "admission"}


def scalars(struct, base=0, prefix=""):
    """Every scalar of a struct as (dotted name, offset, dtype), nested ones included."""
    for field in LAYOUT.structs[struct]:
        yield from inside(field.form, base + field.offset, prefix + field.name)


def inside(form, offset, name):
    if form in LAYOUT.structs:
        yield from scalars(form, offset, name + ".")
    elif form.startswith("("):
        count, inner = form[1:].split(",)")
        size = form_of(inner, LAYOUT.strings).size
        for number in range(int(count)):
            yield from inside(inner, offset + number * size, f"{name}.{number}")
    else:
        yield name, offset, np.dtype(form)


def filled(kind):
    """An account whose every scalar holds a different value, and those values by name."""
    counter = itertools.count(1)
    size = LAYOUT.accounts[kind].size
    data = bytearray(size)
    data[:8] = LAYOUT.accounts[kind].discriminator
    values = {}
    for name, offset, dtype in scalars(kind):
        number = next(counter)
        if name == "version":
            number = LAYOUT.layout_version
        elif name.rsplit(".", 1)[-1] in SMALL:
            number %= 2
        elif dtype.itemsize == 1:
            number %= 250
        raw = number.to_bytes(2, "little") * 32 if dtype.kind == "V" else b""
        raw = raw[: dtype.itemsize] or number.to_bytes(max(dtype.itemsize, 8), "little")
        raw = raw[: dtype.itemsize].ljust(dtype.itemsize, b"\1")
        data[8 + offset : 8 + offset + dtype.itemsize] = raw
        values[name] = raw if dtype.kind == "V" else int.from_bytes(raw, "little")
    return Account(1, LAYOUT.program_id, bytes(data)), values


def flat(value, name):
    """A view's scalars by the same dotted names."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            dotted = f"{name}.{field.name}" if name else field.name
            yield from flat(getattr(value, field.name), dotted)
    elif isinstance(value, tuple):
        for number, inner in enumerate(value):
            yield from flat(inner, f"{name}.{number}")
    else:
        yield name, value


def compare(found, values):
    missing = []
    for name, value in found:
        if name not in values:
            missing.append(name)
            continue
        assert value == values[name], name
    return missing


def test_every_field_of_a_run():
    account, values = filled("Run")
    view = READER.run(ADDRESS, account)
    assert compare(flat(view, ""), values) == ["address"]
    assert view.address == bytes(ADDRESS)
    assert isinstance(view.phase, Phase)
    assert isinstance(view.flags, RunFlag)
    assert isinstance(view.params.admission, Admission)
    assert type(view.round) is int
    assert type(view.root) is bytes


def test_every_field_of_a_roster():
    account, values = filled("Roster")
    entries = READER.roster(ADDRESS, account)
    assert len(entries) == 64
    assert compare(flat(entries, "entries"), values) == []
    assert isinstance(entries[63].status, Status)
    assert isinstance(entries[0].roles, Role)
    assert isinstance(entries[0].flags, EntryFlag)
    assert type(entries[5].strike_rounds) is tuple


def test_every_field_of_a_round():
    account, values = filled("Round")
    view = READER.round(ADDRESS, account)
    assert len(view.ballots) == 64
    assert compare(flat(view, ""), values) == []
    assert isinstance(view.flags, RoundFlag)
    assert isinstance(view.seed_status, SeedStatus)
    assert len(view.ballots[63].possession) == 64


READERS = {
    "Run": READER.run,
    "Roster": READER.roster,
    "Round": READER.round,
    "Participant": READER.participant,
    "Checkpoint": READER.checkpoint,
}
EVERY_KIND = pytest.mark.parametrize("kind", READERS)


def blank(kind, **changes):
    known = LAYOUT.accounts[kind]
    data = bytearray(known.size)
    data[:8], data[8] = known.discriminator, LAYOUT.layout_version
    return dataclasses.replace(Account(1, LAYOUT.program_id, bytes(data)), **changes)


@EVERY_KIND
def test_a_blank_account_is_read(kind):
    READERS[kind](ADDRESS, blank(kind))


@EVERY_KIND
def test_an_account_of_another_program(kind):
    with pytest.raises(AccountOwnerError) as caught:
        READERS[kind](ADDRESS, blank(kind, owner=ADDRESS))
    assert str(LAYOUT.program_id) in str(caught.value)
    assert str(ADDRESS) in str(caught.value)


@EVERY_KIND
def test_a_wallet_is_told_apart(kind):
    with pytest.raises(AccountOwnerError, match="a wallet"):
        READERS[kind](ADDRESS, blank(kind, owner=Pubkey.default()))


@EVERY_KIND
@pytest.mark.parametrize("other", READERS)
def test_an_account_of_another_kind(kind, other):
    if other == kind:
        return
    with pytest.raises(AccountTypeError, match=f"expected the type {kind}, found {other}"):
        READERS[kind](ADDRESS, blank(other))


@EVERY_KIND
@pytest.mark.parametrize("data", [b"", b"\0", bytes(8), bytes(5000)])
def test_data_without_a_known_type(kind, data):
    with pytest.raises(AccountTypeError, match="an unknown type"):
        READERS[kind](ADDRESS, blank(kind, data=data))


@EVERY_KIND
@pytest.mark.parametrize("delta", [-1, 1, -100, 10_000])
def test_an_account_of_another_size(kind, delta):
    data = blank(kind).data
    data = data[:delta] if delta < 0 else data + bytes(delta)
    with pytest.raises(AccountSizeError, match=f"{len(data)} bytes"):
        READERS[kind](ADDRESS, blank(kind, data=data))


@EVERY_KIND
def test_an_account_of_another_version(kind):
    data = bytearray(blank(kind).data)
    data[8] += 1
    with pytest.raises(AccountVersionError, match="matches the program"):
        READERS[kind](ADDRESS, blank(kind, data=bytes(data)))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Run", "phase"),
        ("Run", "params.admission"),
        ("Roster", "entries.63.status"),
        ("Round", "seed_status"),
    ],
)
def test_a_number_that_no_enum_knows(kind, name):
    account, _values = filled(kind)
    offset = next(offset for found, offset, _dtype in scalars(kind) if found == name)
    data = bytearray(account.data)
    data[8 + offset] = 99
    field = name.split(".")[-1]
    with pytest.raises(AccountValueError, match=rf"\w+\.{field}: expected a known value, found 99"):
        READERS[kind](ADDRESS, dataclasses.replace(account, data=bytes(data)))


def test_a_text_that_the_program_never_writes():
    """Threat T62. Its length runs out of the account: a bad answer of a node, which ends nobody."""
    account = blank("Participant")
    bad = account.data[:9] + b"\xff" * (len(account.data) - 9)
    with pytest.raises(AccountValueError, match=r"Participant account .*that fit the IDL"):
        READER.participant(ADDRESS, dataclasses.replace(account, data=bad))


@pytest.mark.parametrize("name", ["target", "outcome", "case_outcome", "num_available"])
def test_a_number_of_an_audit_that_the_program_never_writes(name):
    """An RPC node that flips a bit must not end a participant with an error of an enum."""
    data = bytearray(blank("Audit").data)
    data[8 + LAYOUT.field("Audit", name).offset] = 99
    with pytest.raises(AccountValueError, match=rf"Audit\.{name}: expected at most .*found 99"):
        READER.audit(ADDRESS, blank("Audit", data=bytes(data)))


@pytest.mark.parametrize("place", ["seats", "jurors"])
@pytest.mark.parametrize("name", ["verdict", "index"])
def test_a_number_of_a_seat_that_the_program_never_writes(place, name):
    struct = place[:-1].capitalize()
    data = bytearray(blank("Audit").data)
    count = "num_available" if place == "seats" else "num_jurors"
    data[8 + LAYOUT.field("Audit", count).offset] = 7
    offset = next(f.offset for f in LAYOUT.structs[struct] if f.name == name)
    data[8 + LAYOUT.field("Audit", place).offset + offset] = 129
    with pytest.raises(AccountValueError, match=rf"{struct}\.{name}: .*found 129"):
        READER.audit(ADDRESS, blank("Audit", data=bytes(data)))


@given(
    data=st.binary(min_size=0, max_size=600), kind=st.sampled_from(["Participant", "Checkpoint"])
)
def test_arbitrary_borsh_is_read_or_refused_by_name(data, kind):
    whole = bytearray(blank(kind).data)
    whole[9 : 9 + len(data)] = data[: len(whole) - 9]
    try:
        READERS[kind](ADDRESS, blank(kind, data=bytes(whole)))
    except ChainError as error:
        assert error.next_step


def broken(change):
    source = copy.deepcopy(artifacts.read_json(artifacts.LAYOUT))
    change(source)
    return source


@pytest.mark.parametrize(
    "change",
    [
        lambda source: source.pop("program_id"),
        lambda source: source.update(program_id="short"),
        lambda source: source["structs"].pop("Params"),
        lambda source: source["structs"]["Run"]["fields"].pop(3),
        lambda source: source["structs"]["Run"].update(size=7),
        lambda source: source["structs"]["Ballot"]["fields"][0].__setitem__(2, "nonsense"),
        lambda source: source["accounts"]["Run"].pop("size"),
        lambda source: source.update(enums=None),
    ],
)
def test_a_layout_with_gaps_is_refused(change):
    with pytest.raises(ArtifactError, match=r"layout\.json"):
        read_layout(broken(change))


def test_a_field_that_the_program_does_not_have():
    with pytest.raises(ArtifactError, match="Run with the field surprise"):
        LAYOUT.record("Run", ["version", "surprise"])
    with pytest.raises(ArtifactError, match="surprise"):
        LAYOUT.field("Run", "surprise")


def test_enums_are_those_of_the_program():
    """The rules' enums and the program's constants name the same numbers."""

    def snake(name):
        return "".join("_" + c if c.isupper() else c for c in name).lstrip("_").upper()

    pairs = {
        "phase": Phase,
        "status": Status,
        "seed_status": SeedStatus,
        "admission": Admission,
        "role": Role,
        "run_flag": RunFlag,
        "entry_flag": EntryFlag,
        "round_flag": RoundFlag,
        "audit_kind": AuditKind,
        "audit_stage": AuditStage,
        "audit_flag": AuditFlag,
        "seat_flag": SeatFlag,
    }
    for name, ours in pairs.items():
        theirs = {snake(key) if key[0].isupper() else key.upper(): value
                  for key, value in LAYOUT.enums[name].items()}  # fmt: skip
        assert theirs == {member.name: member.value for member in ours}, name


def test_markers_are_those_of_the_program():
    theirs = artifacts.read_json(artifacts.LAYOUT)["constants"]
    assert theirs["none"] == ids.NONE
    assert theirs["no_index"] == ids.NO_INDEX
    assert theirs["max_participants"] == ids.MAX_PARTICIPANTS
    assert theirs["max_tickets"] == ids.MAX_TICKETS


def test_errors_form_one_tree():
    assert issubclass(AccountError, ChainError)


@pytest.mark.parametrize(("kind", "field"), [("Roster", "entries"), ("Round", "ballots")])
def test_the_same_bytes_are_decoded_once(kind, field):
    reader = AccountReader(LAYOUT, program_codec())
    read = getattr(reader, kind.lower())
    account, _ = filled(kind)
    again = dataclasses.replace(account, data=bytes(bytearray(account.data)))
    assert read(ADDRESS, again) is read(ADDRESS, account)
    changed = bytearray(account.data)
    changed[8 + LAYOUT.field(kind, field).offset] ^= 1
    assert read(ADDRESS, dataclasses.replace(account, data=bytes(changed))) != read(
        ADDRESS, account
    )
    foreign = dataclasses.replace(account, owner=ADDRESS)
    for _ in range(2):
        with pytest.raises(AccountOwnerError):
            read(ADDRESS, foreign)
