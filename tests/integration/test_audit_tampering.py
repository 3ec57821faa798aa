"""One thing of an archive is forged: the audit names it, and never passes or crashes."""

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from support.forgeries import blobs, change_chain, flip, lines, reforge, rewrite, swapped
from support.recordings import account_of, audit_of, play, put

from troth_attestation.header import HEADER_BYTES, SIGNATURE_BYTES, decode
from troth_audit.replay.findings import Grade, Rule
from troth_audit.replay.report import Verdict
from troth_client.run_files.fetch import parse_config
from troth_coordinator.chain.event_types_life import RunCreated
from troth_coordinator.chain.event_types_rounds import (
    Attested,
    PayloadCommitted,
    RoundClosed,
    RoundOpened,
)

Tamper = Callable[[Path], None]
NAMES = ("ada", "bob", "cyd")
ROUNDS = 4


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory) -> Path:
    """The archive of an honest run of three."""
    return play(data, tmp_path_factory.mktemp("recorded"), ROUNDS, NAMES)


@pytest.fixture
def archive(recorded, tmp_path) -> Path:
    """A copy to forge."""
    return Path(shutil.copytree(recorded, tmp_path / "archive"))


def first(kind: str, change: Callable[[Path], None]) -> Tamper:
    return lambda folder: change(blobs(folder, kind)[0])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def swap_with_next(path: Path) -> None:
    other = sorted(path.parent.iterdir())[1]
    path.write_bytes(other.read_bytes())


def to_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def to_link(path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def sign_as_next(path: Path) -> None:
    other = sorted(path.parent.iterdir())[1].read_bytes()
    path.write_bytes(path.read_bytes()[:HEADER_BYTES] + other[HEADER_BYTES:])


BYTES = {
    "payload flipped": (first("payload", lambda path: flip(path, 40)), Rule.PAYLOAD),
    "payload cut": (first("payload", cut), Rule.PAYLOAD),
    "payload too long": (first("payload", grow), Rule.PAYLOAD),
    "payload empty": (first("payload", empty), Rule.PAYLOAD),
    "payload of another": (first("payload", swap_with_next), Rule.PAYLOAD),
    "payload a fifo": (first("payload", to_fifo), Rule.PAYLOAD),
    "payload a link": (first("payload", to_link), Rule.PAYLOAD),
    "payload a folder": (first("payload", to_folder), Rule.PAYLOAD),
    "header flipped": (first("header", lambda path: flip(path, 40)), Rule.HEADER),
    "header cut": (first("header", lambda path: path.write_bytes(b"\1" * 100)), Rule.HEADER),
    "header too long": (first("header", grow), Rule.HEADER),
    "header of another": (first("header", swap_with_next), Rule.HEADER),
    "header a fifo": (first("header", to_fifo), Rule.HEADER),
    "signature flipped": (first("header", lambda path: flip(path, -1)), Rule.SIGNATURE),
    "signature cut": (first("header", cut), Rule.HEADER),
    "signature of another": (first("header", sign_as_next), Rule.SIGNATURE),
    "config flipped": (first("config", lambda path: flip(path, 3)), Rule.CONFIG),
    "config cut": (first("config", cut), Rule.CONFIG),
    "manifest flipped": (first("manifest", lambda path: flip(path, 3)), Rule.MANIFEST),
    "manifest empty": (first("manifest", empty), Rule.MANIFEST),
}
LACKS = {kind: first(kind, Path.unlink) for kind in ("payload", "header", "config", "manifest")}


def without(at: int) -> Tamper:
    def tamper(folder: Path) -> None:
        found = lines(folder)
        del found[at]
        rewrite(folder, found)

    return tamper


def swap_lines(folder: Path) -> None:
    found = lines(folder)
    # The creation of a run is followed by events that carry numbers of their own.
    found[2], found[3] = found[3], found[2]
    rewrite(folder, found)


def garble(folder: Path) -> None:
    found = lines(folder)
    found[10] = b"no json\n"
    rewrite(folder, found)


def flip_body(folder: Path) -> None:
    found = lines(folder)
    at = next(i for i, line in enumerate(found) if b"RoundOpened" in line)
    head, _, tail = found[at].partition(b'["RoundOpened","')
    tail = tail[:60] + (b"A" if tail[60:61] != b"A" else b"B") + tail[61:]
    found[at] = head + b'["RoundOpened","' + tail
    rewrite(folder, found)


def repeat_last(folder: Path) -> None:
    found = lines(folder)
    rewrite(folder, [*found, found[-1]])


LEDGERS = {
    "a hole": without(5),
    "no creation": without(1),
    "two lines swapped": swap_lines,
    "a line repeated": repeat_last,
    "a line of no JSON": garble,
    "a changed event": flip_body,
}


def drop_tail(folder: Path) -> None:
    rewrite(folder, lines(folder)[:-4])


def tear(folder: Path) -> None:
    found = lines(folder)
    rewrite(folder, [*found[:-1], found[-1][:20]])


def first_round(event: object) -> bool:
    return getattr(event, "round", None) == 1


def flip_included(folder: Path) -> None:
    def edit(event: object) -> bytes | None:
        if isinstance(event, RoundClosed) and first_round(event):
            old = struct.pack("<QQ32s", event.attested, event.included, event.canonical_root)
            new = struct.pack("<QQ32s", event.attested, event.included & ~1, event.canonical_root)
            return swapped(event, old, new)
        return None

    reforge(folder, edit)


def other_root(folder: Path) -> None:
    def edit(event: object) -> bytes | None:
        if isinstance(event, RoundClosed) and first_round(event):
            return swapped(event, event.canonical_root, bytes(31) + b"\1")
        return None

    reforge(folder, edit)


def other_vote(folder: Path) -> None:
    def edit(event: object) -> bytes | None:
        if isinstance(event, PayloadCommitted) and first_round(event) and event.index == 0:
            return swapped(event, event.root_vote, bytes(32))
        return None

    reforge(folder, edit)


def other_cursor(folder: Path) -> None:
    def edit(event: object) -> bytes | None:
        if isinstance(event, RoundOpened) and first_round(event):
            old, new = (
                struct.pack("<QQQ", event.round, event.epoch, event.cursor + more)
                for more in (0, 1)
            )
            return swapped(event, old, new)
        return None

    reforge(folder, edit)


def other_possession(folder: Path) -> None:
    def edit(event: object) -> bytes | None:
        if isinstance(event, Attested) and first_round(event) and event.index == 1:
            changed = bytes([event.possession[0] ^ 1]) + event.possession[1:]
            return swapped(event, event.possession, changed)
        return None

    reforge(folder, edit)


def outsider_commits(folder: Path) -> None:
    def edit(event: object) -> bytes | None:
        if isinstance(event, PayloadCommitted) and first_round(event) and event.index == 2:
            old, new = (
                struct.pack("<QQH", event.round, event.slot, index) for index in (event.index, 200)
            )
            return swapped(event, old, new)
        return None

    reforge(folder, edit)


FORGED = {
    "an included payload left out": (flip_included, Rule.CLOSE),
    "another canonical root": (other_root, Rule.CLOSE),
    "another vote": (other_vote, Rule.CLOSE),
    "another cursor": (other_cursor, Rule.ROUND_SETS),
    "another byte of possession": (other_possession, Rule.POSSESSION),
    "a commit of nobody": (outsider_commits, Rule.CHAIN_HASH),
}


def assert_named(folder: Path, grade: Grade, rule: Rule) -> None:
    report = audit_of(folder)
    assert rule in [one.rule for one in report.findings if one.grade is grade]
    assert report.verdict is (Verdict.WRONG if grade is Grade.DISCREPANCY else Verdict.INCOMPLETE)


def test_the_clean_archive_passes(archive):
    report = audit_of(archive)
    assert report.findings == []
    assert report.verdict is Verdict.GOOD
    assert report.counts["payloads"] == ROUNDS * len(NAMES)


@pytest.mark.parametrize("name", BYTES)
def test_forged_bytes_are_named(archive, name):
    tamper, rule = BYTES[name]
    kind = "header" if rule is Rule.SIGNATURE else rule.value
    place = made_by(archive, kind, blobs(archive, kind)[0].name)
    tamper(archive)
    report = audit_of(archive)
    (found,) = (one for one in report.findings if one.grade is Grade.DISCREPANCY)
    round_, participant = place
    assert found.rule is rule
    assert found.round == round_
    assert found.participant == participant
    assert found.found.partition(" in ")[0]
    assert report.verdict is Verdict.WRONG


def test_a_cut_signature_is_named_with_its_length_and_a_second_source_mends_it(archive, recorded):
    cut(blobs(archive, "header")[0])
    (found,) = audit_of(archive).findings[:1]
    num, whole = HEADER_BYTES + SIGNATURE_BYTES - 1, HEADER_BYTES + SIGNATURE_BYTES
    reason = f"{num} bytes where a header with its signature has {whole}"
    assert found.found == f"{reason} in {archive}"
    assert audit_of(archive, recorded).verdict is Verdict.GOOD


def made_by(folder: Path, kind: str, key: str) -> tuple[int | None, int | None]:
    """Round and participant that made a blob of an honest archive; a file of the run has none."""
    for path in blobs(folder, "header"):
        header = decode(path.read_bytes()[:HEADER_BYTES])
        if key == {"header": path.name, "payload": header.payload_root.hex()}.get(kind):
            return header.round, header.index
    return None, None


@pytest.mark.parametrize("kind", LACKS)
def test_bytes_that_nobody_has_are_missing_and_prove_nothing(archive, kind):
    LACKS[kind](archive)
    assert_named(archive, Grade.MISSING, Rule(kind))


@pytest.mark.parametrize("name", LEDGERS)
def test_a_ledger_that_does_not_fold_ends_the_audit(archive, name):
    LEDGERS[name](archive)
    assert_named(archive, Grade.DISCREPANCY, Rule.CHAIN_HASH)


@pytest.mark.parametrize("tamper", [drop_tail, tear])
def test_a_ledger_that_ends_too_early_lacks_data(archive, tamper):
    tamper(archive)
    assert_named(archive, Grade.MISSING, Rule.CHAIN_HASH)


@pytest.mark.parametrize("name", FORGED)
def test_a_ledger_with_hashes_of_its_own_is_not_that_of_the_account(archive, name):
    """The liar computed all hashes again; the votes, the bytes and the account tell."""
    tamper, rule = FORGED[name]
    tamper(archive)
    report = audit_of(archive)
    found = {one.rule for one in report.findings if one.grade is Grade.DISCREPANCY}
    assert report.verdict is Verdict.WRONG
    assert {rule, Rule.CHAIN_HASH} <= found


@pytest.mark.parametrize("at", ["chain_hash", "root", "config_hash"])
def test_a_changed_account_is_named(archive, at):
    value = getattr(account_of(archive), at)

    def change(data: bytearray) -> None:
        place = data.index(value)
        data[place] ^= 1

    change_chain(archive, change)
    report = audit_of(archive)
    assert report.verdict is Verdict.WRONG
    assert {one.rule for one in report.findings} <= {Rule.CHAIN_HASH, Rule.RUN_ACCOUNT}


def test_a_second_source_mends_the_first(archive, recorded):
    flip(blobs(archive, "payload")[0], 7)
    sign_as_next(blobs(archive, "header")[0])
    assert audit_of(archive).verdict is Verdict.WRONG
    assert audit_of(archive, recorded).verdict is Verdict.GOOD


def with_config(folder: Path, section: str, **changes: object) -> None:
    """The liar makes a run with another config, and all hashes fit."""
    old = parse_config(blobs(folder, "config")[0].read_bytes())
    part = getattr(old, section).model_copy(update=changes)
    new = old.model_copy(update={section: part})
    put(folder, "config", new.config_hash().hex(), new.canonical_json())

    def edit(event: object) -> bytes | None:
        if isinstance(event, RunCreated):
            return swapped(event, old.config_hash(), new.config_hash())
        return None

    reforge(folder, edit)
    (folder / "chain.json").unlink()


CONFIGS = {
    "another data manifest": ("data", {"manifest_hash": "ab" * 32}),
    "other payloads": ("train", {"sequences_per_payload": 3, "microbatch_sequences": 1}),
    "another number of rounds": ("schedule", {"rounds": 77, "decay_from_round": 77}),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_that_is_not_that_of_the_creation_is_named(archive, name):
    section, changes = CONFIGS[name]
    with_config(archive, section, **changes)
    assert_named(archive, Grade.DISCREPANCY, Rule.CONFIG)


def test_a_model_beyond_all_memory_leaves_the_weights_missing(archive):
    with_config(archive, "model", vocab_size=2**31 - 1, hidden_size=2**31 - 8)
    report = audit_of(archive)
    assert "memory" in " ".join(one.expected for one in report.findings)
    assert report.verdict is not Verdict.GOOD


PLACES = {"rounds_per_epoch": (464, 4), "residual_rounds": (468, 4), "ring": (494, 2)}
"""Offset and bytes of parameters in the body of `RunCreated`."""


@pytest.mark.parametrize("field", PLACES)
def test_parameters_that_no_run_can_have_end_the_audit(archive, field):
    """The liar creates a run that would divide by zero."""
    at, size = PLACES[field]

    def edit(event: object) -> bytes | None:
        if not isinstance(event, RunCreated):
            return None
        found = int.from_bytes(event.body[at : at + size], "little")
        assert found == getattr(event.params, field)
        return event.body[:at] + bytes(size) + event.body[at + size :]

    reforge(archive, edit)
    assert_named(archive, Grade.DISCREPANCY, Rule.CHAIN_HASH)
