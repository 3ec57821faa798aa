"""An amount that is no finite number is refused by name, whichever option takes it."""

import pytest
from solders.keypair import Keypair

from troth_cli.errors import InputError
from troth_cli.keyfiles import write_key
from troth_cli.view.amounts import MAX_GB, gigabytes

RUN = Keypair().pubkey()
RPC = ("--rpc", "http://127.0.0.1:9")
VALUES = ["inf", "-inf", "nan", "-1", "1e400", "-1e400", "1e30"]
JOIN = ("join", str(RUN), "--archive", "kept")
OPTIONS = {
    "--max-gb": ("archive", str(RUN), "--out", "kept"),
    "--archive-max-gb": JOIN,
    "--session-sol": JOIN,
    "--refill-sol": JOIN,
    "--stake-sol": JOIN,
    "--top-up-sol": JOIN,
    "--priority-cap-sol": JOIN,
    "--priority-epoch-cap-sol": JOIN,
    "--unbond": ("withdraw", str(RUN)),
    "--sol": ("run", "fund", str(RUN)),
    "--adamw-lr": ("profile",),
}
"""Each option that takes a number with decimals, and a command that has it."""
UNSIGNED = ("archive", "profile")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("option", OPTIONS)
def test_what_is_no_amount_is_refused_and_nothing_is_asked(
    cli, tmp_path, monkeypatch, asked, option, value
):
    monkeypatch.chdir(tmp_path)
    write_key(tmp_path / "key.json", Keypair())
    words = OPTIONS[option]
    signed = () if words[0] in UNSIGNED else ("--key", tmp_path / "key.json")
    rpc = () if words[0] == "profile" else RPC
    done = cli(*words, *signed, *rpc, f"{option}={value}", "--json")
    assert done.code in (1, 2)
    assert done.error["kind"] in ("InputError", "UsageError")
    assert option in done.error["subject"] + done.error["found"]
    assert "report it" not in done.error["next_step"]
    assert asked == []
    assert not (tmp_path / "kept").exists()


def test_the_bound_of_an_archive_in_bytes():
    assert gigabytes(None, "--max-gb") is None
    assert gigabytes(0.5, "--max-gb") == 500_000_000
    assert gigabytes(MAX_GB, "--max-gb") == MAX_GB * 10**9
    with pytest.raises(InputError, match="--max-gb"):
        gigabytes(float("nan"), "--max-gb")
