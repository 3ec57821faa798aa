"""The bounds of an archive beside a participant reach it; without an archive they are refused."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from solders.keypair import Keypair

from troth_cli.keyfiles import write_key
from troth_client.archive.room import Keeping
from troth_client.participant import process

RUN = Keypair().pubkey()


@pytest.fixture
def arguments(tmp_path):
    write_key(tmp_path / "key.json", Keypair())
    return (str(RUN), "--key", tmp_path / "key.json", "--rpc", "http://127.0.0.1:9")


ARCHIVE = ("--archive", "archive")


def kept_by(request):
    """The settings of the archive that a participant keeps for a request."""
    owner = SimpleNamespace(at=SimpleNamespace(run=RUN), client=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(process, "archive_beside", lambda kept, *_: kept)
        return process._archive(request.settings, owner, None, None, b"")


@pytest.mark.parametrize("name", ["join", "witness"])
@pytest.mark.parametrize(
    ("given", "keeping"),
    [
        ((), Keeping()),
        (("--archive-max-gb", "0.5"), Keeping(max_bytes=500_000_000)),
        (("--archive-keep-rounds", "7"), Keeping(rounds=7)),
        (("--archive-max-gb", "2", "--archive-keep-rounds", "1"), Keeping(2 * 10**9, 1)),
    ],
    ids=str,
)
def test_the_bounds_reach_the_archive(cli, arguments, asked, name, given, keeping):
    cli.ok(name, *arguments, *ARCHIVE, *given)
    kept = kept_by(asked[0])
    assert kept.folder == Path("archive")
    assert kept.keeping == keeping


@pytest.mark.parametrize("given", [("--archive-max-gb", "1"), ("--archive-keep-rounds", "1")])
def test_a_bound_of_no_archive_is_refused(cli, arguments, asked, given):
    refused = cli.refused("join", *arguments, *given)
    assert refused["kind"] == "InputError"
    assert refused["subject"] == given[0]
    assert "--archive DIR" in refused["next_step"]
    assert asked == []


@pytest.mark.parametrize("given", [("--archive-max-gb", "-1"), ("--archive-keep-rounds", "0")])
def test_a_bound_that_is_none_is_not_understood(cli, arguments, asked, given):
    done = cli("join", *arguments, *ARCHIVE, *given)
    assert done.code == 2
    assert asked == []
