"""One thing of a ledger or an account is forged: the audit names it, and never passes or crashes.

Forged bytes of an archive are in test_audit_forged_bytes.py.
"""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from support.forgeries import blobs, change_chain, lines, reforge, rewrite, swapped
from support.recordings import account_of, audit_of, play, put

from troth_audit.replay.findings import Grade, Rule
from troth_audit.replay.report import Conclusion
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
FORGED_ROUND = 1


@pytest.fixture(scope="module")
def recorded(data, tmp_path_factory) -> Path:
    """The archive of an honest run of three."""
    return play(data, tmp_path_factory.mktemp("recorded"), ROUNDS, NAMES)


@pytest.fixture
def archive(recorded, tmp_path) -> Path:
    """A copy to forge."""
    return Path(shutil.copytree(recorded, tmp_path / "archive"))


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
    return getattr(event, "round", None) == FORGED_ROUND


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
    "an included payload left out": (flip_included, Rule.CLOSE, None),
    "another canonical root": (other_root, Rule.CLOSE, None),
    "another vote": (other_vote, Rule.ROOT_VOTE, 0),
    "another cursor": (other_cursor, Rule.ROUND_SETS, None),
    "another byte of possession": (other_possession, Rule.POSSESSION, 1),
    "a commit of nobody": (outsider_commits, Rule.CLOSE, None),
}


def assert_named(folder: Path, grade: Grade, rule: Rule) -> None:
    report = audit_of(folder)
    assert rule in [one.rule for one in report.findings if one.grade is grade]
    assert report.conclusion is (
        Conclusion.WRONG if grade is Grade.DISCREPANCY else Conclusion.INCOMPLETE
    )


def test_the_clean_archive_passes(archive):
    report = audit_of(archive)
    assert report.findings == []
    assert report.conclusion is Conclusion.GOOD
    assert report.counts["payloads"] == ROUNDS * len(NAMES)


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
    tamper, rule, participant = FORGED[name]
    tamper(archive)
    report = audit_of(archive)
    wrong = [one for one in report.findings if one.grade is Grade.DISCREPANCY]
    places = {(one.rule, one.round, one.participant) for one in wrong}
    assert report.conclusion is Conclusion.WRONG
    named = rule, FORGED_ROUND, participant
    assert named in places
    assert Rule.CHAIN_HASH in {one.rule for one in wrong}


@pytest.mark.parametrize("at", ["chain_hash", "root", "config_hash"])
def test_a_changed_account_is_named(archive, at):
    value = getattr(account_of(archive), at)

    def change(data: bytearray) -> None:
        place = data.index(value)
        data[place] ^= 1

    change_chain(archive, change)
    report = audit_of(archive)
    assert report.conclusion is Conclusion.WRONG
    assert {one.rule for one in report.findings} <= {Rule.CHAIN_HASH, Rule.RUN_ACCOUNT}


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


MISFITS = {
    "longer sequences than the config has": ("data", {"sequence_tokens": 8}),
    "more words than the model has": ("model", {"vocab_size": 128}),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_data_set_that_the_model_of_its_run_cannot_take_is_named(archive, name):
    """Members are refused when they join: nobody can have trained on it as the config says."""
    section, changes = MISFITS[name]
    with_config(archive, section, **changes)
    assert_named(archive, Grade.DISCREPANCY, Rule.MANIFEST)


def test_a_model_beyond_all_memory_leaves_the_weights_missing(archive):
    with_config(archive, "model", vocab_size=2**31 - 1, hidden_size=2**31 - 8)
    report = audit_of(archive)
    assert "memory" in " ".join(one.expected for one in report.findings)
    assert report.conclusion is not Conclusion.GOOD


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
