"""Bytes of an archive are forged, one thing at a time: the audit names exactly that one.

Which blob is forged, and where, is drawn by a seed; another SEED draws others.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from support.archives import recorded
from support.forgeries import blobs
from support.recordings import audit_of
from support.runs import AUDITED

from troth_attestation.header import HEADER_BYTES, SIGNATURE_BYTES, decode
from troth_audit.replay.findings import Grade, Rule
from troth_audit.replay.report import Conclusion
from troth_coordinator.chain.event_types_audits import OpeningsPosted
from troth_coordinator.ledger.file import Ledger

SEED = 1
DRAWS = 3
"""So many blobs of a kind have one bit turned."""
RULES = {
    "payload": Rule.PAYLOAD,
    "header": Rule.HEADER,
    "signature": Rule.SIGNATURE,
    "openings": Rule.OPENINGS,
    "config": Rule.CONFIG,
    "manifest": Rule.MANIFEST,
}
SIGNED_BYTES = HEADER_BYTES + SIGNATURE_BYTES

Forge = Callable[[Path, Random], object]
Place = tuple[int | None, int | None]


def flip(path: Path, dice: Random, first: int = 0, last: int | None = None) -> None:
    data = bytearray(path.read_bytes())
    data[dice.randrange(first, len(data) if last is None else last)] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def flip_header(path: Path, dice: Random) -> None:
    flip(path, dice, last=HEADER_BYTES)


def flip_signature(path: Path, dice: Random) -> None:
    flip(path, dice, first=HEADER_BYTES)


def cut(path: Path, dice: Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: dice.randrange(1, len(data))])


def cut_signature(path: Path, dice: Random) -> None:
    path.write_bytes(path.read_bytes()[: dice.randrange(HEADER_BYTES, SIGNED_BYTES)])


def grow(path: Path, dice: Random) -> None:
    path.write_bytes(path.read_bytes() + dice.randbytes(dice.randrange(1, 100)))


def empty(path: Path, _: Random) -> None:
    path.write_bytes(b"")


def replace(path: Path, dice: Random) -> None:
    path.write_bytes(another(path, dice))


def sign_as_another(path: Path, dice: Random) -> None:
    path.write_bytes(path.read_bytes()[:HEADER_BYTES] + another(path, dice)[HEADER_BYTES:])


def another(path: Path, dice: Random) -> bytes:
    """The bytes of another blob of the kind."""
    others = [one for one in blobs(path.parents[1], path.parent.name) if one != path]
    return dice.choice(others).read_bytes()


def to_fifo(path: Path, _: Random) -> None:
    path.unlink()
    os.mkfifo(path)


def to_link(path: Path, _: Random) -> None:
    elsewhere = path.parents[1] / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def to_folder(path: Path, _: Random) -> None:
    path.unlink()
    path.mkdir()


FLIPS: dict[str, Forge] = {
    "payload": flip,
    "header": flip_header,
    "signature": flip_signature,
    "openings": flip,
    "config": flip,
    "manifest": flip,
}
FORMS: dict[str, Forge] = {
    "cut": cut,
    "too long": grow,
    "empty": empty,
    "a fifo": to_fifo,
    "a link": to_link,
    "a folder": to_folder,
}
FORGED: dict[str, tuple[str, Forge]] = {
    **{f"{kind} flipped, {n}": (kind, one) for kind, one in FLIPS.items() for n in range(DRAWS)},
    **{
        f"{kind} {form}": (kind, one)
        for kind in ("payload", "header", "openings", "config", "manifest")
        for form, one in FORMS.items()
    },
    **{f"{kind} of another": (kind, replace) for kind in ("payload", "header", "openings")},
    "signature cut": ("header", cut_signature),
    "signature of another": ("signature", sign_as_another),
}


@dataclass(frozen=True)
class Past:
    """The archive of an honest run with audits, and who made what: by kind and hash."""

    folder: Path
    made: dict[tuple[str, str], Place]


@pytest.fixture(scope="module")
def past(data, tmp_path_factory) -> Past:
    with recorded(data, tmp_path_factory.mktemp("past"), 5, **AUDITED) as found:
        folder = found.path
    made: dict[tuple[str, str], Place] = {}
    for path in blobs(folder, "header"):
        header = decode(path.read_bytes()[:HEADER_BYTES])
        made["header", path.name] = header.round, header.index
        made["payload", header.payload_root.hex()] = header.round, header.index
    ledger = Ledger.of(folder / "ledger.jsonl")
    for entry in ledger.entries():
        for event in ledger.head.reader().events(entry):
            if isinstance(event, OpeningsPosted):
                made["openings", event.root.hex()] = event.round, event.target
    return Past(folder, made)


@pytest.fixture
def archive(past, tmp_path) -> Path:
    """A copy to forge."""
    return Path(shutil.copytree(past.folder, tmp_path / "archive"))


def test_the_clean_archive_passes_and_all_of_its_work_is_included(archive):
    report = audit_of(archive)
    assert report.findings == []
    assert report.conclusion is Conclusion.GOOD
    assert report.counts["payloads"] == len(blobs(archive, "header"))


def test_more_than_forty_forgeries_are_tried():
    assert len(FORGED) >= 40


@pytest.mark.parametrize("name", FORGED)
def test_forged_bytes_are_named(past, archive, name):
    kind, forge = FORGED[name]
    dice, stored = Random(f"{SEED} {name}"), "header" if kind == "signature" else kind
    victim = dice.choice(blobs(archive, stored))
    forge(victim, dice)
    report = audit_of(archive)
    (found,) = report.findings
    # The address does not cover a signature: whoever held the header before may have spoilt it.
    is_proven = kind != "signature"
    assert found.grade is (Grade.DISCREPANCY if is_proven else Grade.MISSING)
    assert found.rule is RULES[kind]
    assert found.round == past.made.get((stored, victim.name), (None, None))[0]
    assert found.participant == past.made.get((stored, victim.name), (None, None))[1]
    assert victim.name in found.expected
    assert found.found.partition(" in ")[0] != "", "the reason is named"
    assert report.conclusion is (Conclusion.WRONG if is_proven else Conclusion.INCOMPLETE)


@pytest.mark.parametrize("kind", ["payload", "header", "config", "manifest"])
def test_bytes_that_nobody_has_are_missing_and_prove_nothing(past, archive, kind):
    victim = Random(f"{SEED} {kind}").choice(blobs(archive, kind))
    victim.unlink()
    report = audit_of(archive)
    (found,) = report.findings
    assert found.grade is Grade.MISSING
    assert found.rule is RULES[kind]
    assert found.round == past.made.get((kind, victim.name), (None, None))[0]
    assert found.participant == past.made.get((kind, victim.name), (None, None))[1]
    assert found.expected == f"{kind} {victim.name}"
    assert report.conclusion is Conclusion.INCOMPLETE


def test_a_cut_signature_is_named_with_its_length(archive):
    victim = blobs(archive, "header")[0]
    victim.write_bytes(victim.read_bytes()[:-1])
    (found,) = audit_of(archive).findings
    reason = f"{SIGNED_BYTES - 1} bytes where a header with its signature has {SIGNED_BYTES}"
    assert found.found == f"{reason} in {archive}"


def test_a_second_source_mends_the_first(archive, past):
    dice = Random(SEED)
    for kind, forge in (("payload", flip), ("header", sign_as_another), ("header", cut)):
        forge(dice.choice(blobs(archive, kind)), dice)
    assert audit_of(archive).conclusion is Conclusion.WRONG
    assert audit_of(archive, past.folder).conclusion is Conclusion.GOOD
