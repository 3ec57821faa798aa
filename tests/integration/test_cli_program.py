"""`troth program` on the embedded chain: programs shown and compared, deploys refused.

Its loader deploys nothing: test_validator_program.py deploys on another one. Buffers are in
test_cli_program_buffers.py.
"""

import asyncio
import json
import os
import pty

import pytest
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from solders.system_program import CreateAccountParams, create_account
from support.cli import Cli, process
from support.deploys import small_image
from support.network import PROGRAM, SOL, start

from troth_cli.errors import DeployError
from troth_cli.keyfiles import read_key, write_key
from troth_cli.workflows.deploy_plan import (
    Cluster,
    DeployRequest,
    plan_deploy,
    read_cluster,
)
from troth_coordinator import artifacts
from troth_coordinator.chain import loader
from troth_coordinator.chain.codec import program_codec
from troth_coordinator.chain.errors import MalformedReplyError
from troth_coordinator.chain.http_rpc import HttpRpc
from troth_coordinator.chain.program_image import code_hash, packaged_image
from troth_coordinator.chain.sender import Sender

IMAGE = artifacts.program_image()
FLIPPED_AT = IMAGE.index(b"Error Code: ")
"""In a text, which no loader looks at."""
FLIPPED, ELSEWHERE = (Keypair.from_seed(bytes([n]) * 32).pubkey() for n in (1, 2))


def flipped(image, at):
    return image[:at] + bytes([image[at] ^ 1]) + image[at + 1 :]


@pytest.fixture(scope="module")
def chain():
    launcher = start(
        {
            PROGRAM: IMAGE,
            ELSEWHERE: packaged_image("v0", ELSEWHERE),
            FLIPPED: flipped(packaged_image("v0", FLIPPED), FLIPPED_AT),
        }
    )
    yield launcher
    launcher.stop()


@pytest.fixture
def cli(capsys):
    return Cli(capsys)


@pytest.fixture
def owner(chain, tmp_path):
    """A key file with 20 SOL."""
    key = Keypair()
    write_key(tmp_path / "owner.json", key)
    chain.airdrop(key.pubkey(), 20 * SOL)
    return tmp_path / "owner.json"


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    """The folder in which new keys are written."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def key_of(path):
    return read_key(path, pytest.fail)


def test_show_says_who_may_change_the_code_and_its_hash(cli, chain):
    shown = cli.json("program", "show", PROGRAM, "--rpc", chain.rpc_url)
    assert shown["loader"] == str(loader.FIXED)
    assert shown["authority"] is None
    assert shown["sha256"] == code_hash(IMAGE)
    assert shown["room_bytes"] == len(IMAGE)
    text = cli.ok("program", "show", PROGRAM, "--rpc", chain.rpc_url).out
    assert "nobody can change the code" in text


@pytest.mark.parametrize("program", [PROGRAM, ELSEWHERE])
def test_verify_ends_with_0_for_the_packaged_image(cli, chain, program):
    found = cli.json("program", "verify", program, "--rpc", chain.rpc_url)
    assert found["is_equal"]
    assert found["image"] == "packaged v0"
    assert found["first_difference"] is None


def test_verify_names_the_first_offset_that_differs(cli, chain):
    done = cli("program", "verify", FLIPPED, "--json", "--rpc", chain.rpc_url)
    assert done.code == 1
    assert done.json["is_equal"] is False
    assert done.json["first_difference"] == FLIPPED_AT
    assert done.json["sha256"] != done.json["image_sha256"]
    text = cli("program", "verify", FLIPPED, "--rpc", chain.rpc_url).out
    assert f"DIFFERENT from offset {FLIPPED_AT} on" in text


def test_verify_notices_code_that_is_shorter_or_longer(cli, chain, tmp_path):
    verify = ("program", "verify", PROGRAM, "--json", "--rpc", chain.rpc_url, "--image")
    own = tmp_path / "own.so"
    own.write_bytes(IMAGE + b"tail")
    done = cli(*verify, own)
    assert done.code == 1
    assert done.json["first_difference"] == len(IMAGE)
    own.write_bytes(IMAGE[:-100])
    done = cli(*verify, own)
    assert done.code == 1
    assert done.json["image_bytes"] < done.json["code_bytes"]
    assert len(IMAGE) - 100 <= done.json["first_difference"] < len(IMAGE)
    own.write_bytes(IMAGE + bytes(100))
    assert cli(*verify, own).code == 0, "zeros behind the code are room, not code"


def test_verify_takes_an_image_of_ones_own(cli, chain, tmp_path):
    own = tmp_path / "own.so"
    own.write_bytes(flipped(packaged_image("v0", FLIPPED), FLIPPED_AT))
    verify = ("program", "verify", FLIPPED, "--image", own, "--rpc", chain.rpc_url)
    assert cli.json(*verify)["is_equal"]
    own.write_bytes(IMAGE)
    assert cli(*verify).code == 1
    refused = cli.refused(*verify[:4], tmp_path / "missing.so", *verify[5:])
    assert refused["kind"] == "FileError"


@pytest.mark.parametrize("command", ["show", "verify"])
def test_an_address_that_holds_no_program_is_named(cli, chain, owner, command):
    rpc = ("--rpc", chain.rpc_url)
    nothing = cli.refused("program", command, Pubkey.new_unique(), *rpc)
    assert nothing["kind"] == "ProgramMissingError"
    wallet = cli.refused("program", command, key_of(owner).pubkey(), *rpc)
    assert wallet["kind"] == "ForeignProgramError"
    assert "no program" in wallet["found"]
    assert cli.refused("program", command, "x", *rpc)["subject"] == "ADDRESS"


@pytest.mark.parametrize("command", ["show", "verify"])
def test_code_that_the_old_loader_never_made_a_program_of_is_none(cli, chain, owner, command):
    """Anybody can make such an account, with any bytes in it: it runs nothing."""
    account = asyncio.run(make_account(chain.rpc_url, key_of(owner), loader.FIXED))
    refused = cli.refused("program", command, account, "--rpc", chain.rpc_url)
    assert refused["kind"] == "ForeignProgramError"
    assert "nothing can run there" in refused["found"]


async def make_account(rpc_url, payer, owner):
    """Make an account of 36 bytes that belongs to a program; return its address."""
    key = Keypair()
    made = create_account(
        CreateAccountParams(
            from_pubkey=payer.pubkey(),
            to_pubkey=key.pubkey(),
            lamports=SOL,
            space=36,
            owner=owner,
        )
    )
    async with HttpRpc(rpc_url) as rpc:
        await Sender(rpc, program_codec()).send([made], [payer, key])
    return key.pubkey()


@pytest.mark.usefixtures("in_folder")
def test_the_embedded_chain_deploys_nothing_and_says_so_before_it_is_paid(cli, chain, owner):
    refused = cli.refused("program", "deploy", "--key", owner, "--yes", "--rpc", chain.rpc_url)
    assert refused["kind"] == "DeployError"
    assert "--validator" in refused["next_step"]
    assert (
        cli.json("program", "deploy", "--key", owner, "--dry-run", "--rpc", chain.rpc_url)[
            "balance_lamports"
        ]
        == 20 * SOL
    )


def test_a_dry_run_shows_all_costs_and_writes_no_key(cli, chain, owner, in_folder):
    deploy = ("program", "deploy", "--key", owner, "--dry-run", "--rpc", chain.rpc_url)
    plan = cli.json(*deploy, "--max-len", 700_000)
    assert plan["is_done"] is False
    assert plan["kind"] == "deploy"
    assert plan["sbpf"] == "v0"
    assert plan["cluster"] == "a local cluster"
    assert plan["room_bytes"] == 700_000
    assert plan["data_rent_lamports"] == (128 + 45 + 700_000) * 6_960
    assert plan["buffer_rent_lamports"] == (128 + 37 + len(IMAGE)) * 6_960
    assert plan["fees_lamports"] == (1 + plan["chunks_to_send"] + 2) * 5_000
    assert plan["peak_lamports"] == plan["spent_lamports"]
    assert not (in_folder / "troth-program.json").exists()
    assert "troth program close" in cli.ok(*deploy).out


def test_a_dry_run_shows_no_id_unless_it_will_be_that_of_the_deploy(cli, chain, owner, in_folder):
    """The key of a first deploy is kept when it begins, so a dry run has made up another one."""
    deploy = ("program", "deploy", "--key", owner, "--dry-run", "--rpc", chain.rpc_url)
    plan = cli.json(*deploy)
    for name in ("program_id", "buffer", "image_sha256"):
        assert plan[name] is None, name
    shown = cli.ok(*deploy).out
    assert "that of a key which the deploy makes" in shown
    assert "sha256" not in shown
    assert "\nbuffer " not in shown
    program = Keypair()
    write_key(in_folder / "troth-program.json", program)
    plan = cli.json(*deploy)
    assert plan["program_id"] == str(program.pubkey())
    assert plan["buffer"] == str(loader.buffer_address(key_of(owner).pubkey(), program.pubkey()))
    assert str(program.pubkey()) in cli.ok(*deploy).out


def test_too_little_money_is_said_before_anything_is_sent(cli, chain, in_folder):
    write_key(in_folder / "poor.json", Keypair())
    chain.airdrop(key_of(in_folder / "poor.json").pubkey(), SOL)
    deploy = ("program", "deploy", "--key", "poor.json", "--rpc", chain.rpc_url)
    refused = cli.refused(*deploy, "--yes")
    assert refused["kind"] == "FundsError"
    assert refused["found"] == "1 SOL"
    assert "Nothing was sent" in refused["next_step"]
    short = cli.json(*deploy, "--dry-run")["short_lamports"]
    assert f"Send {short / SOL:.9f}".rstrip("0") in refused["next_step"]


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        (["--image", "v3"], "DeployError", "Take --image v0"),
        (["--image", "no/such.so"], "FileError", "no/such.so"),
        (["--image", "owner.json"], "ArtifactError", "declare_id!"),
        (["--max-len", "99000000"], "DeployError", "--max-len"),
        (["--program-key", "no.json"], "KeyFileMissingError", "troth keys new no.json"),
        (["--upgrade", str(FLIPPED)], "DeployError", "Deploy at another id"),
        (["--upgrade", str(FLIPPED_AT)], "InputError", "--upgrade"),
        ([], "InputError", "--yes"),
    ],
)
@pytest.mark.usefixtures("in_folder")
def test_a_deploy_that_cannot_be_is_refused(cli, chain, owner, options, kind, says):
    refused = cli.refused("program", "deploy", "--key", owner, *options, "--rpc", chain.rpc_url)
    assert refused["kind"] == kind
    assert says in json.dumps(refused)


def test_an_upgrade_needs_a_program_and_one_name_for_it(cli, chain, owner):
    deploy = ("program", "deploy", "--key", owner, "--yes", "--rpc", chain.rpc_url)
    missing = cli.refused(*deploy, "--upgrade", Pubkey.new_unique())
    assert "--program-key" in missing["next_step"]
    both = cli.refused(*deploy, "--upgrade", FLIPPED, "--program-key", owner, code=2)
    assert "not both" in both["found"]


async def plan_for(chain, owner, cluster, **options):
    async with HttpRpc(chain.rpc_url) as rpc:
        request = DeployRequest(key_of(owner), ELSEWHERE, None, **options)
        return await plan_deploy(rpc, cluster, request, small_image())


async def test_mainnet_is_refused_unless_it_is_asked_for(chain, owner):
    mainnet = Cluster("mainnet-beta", bytes(32), 6_960, takes_v3=True, takes_older=True)
    with pytest.raises(DeployError, match="--mainnet"):
        await plan_for(chain, owner, mainnet)
    with pytest.raises(DeployError, match="no authority"):
        await plan_for(chain, owner, mainnet, may_be_mainnet=True)


async def test_a_node_that_names_no_price_of_rent_is_not_believed(chain):
    async with HttpRpc(chain.rpc_url) as rpc:
        rpc.get_accounts = _nothing
        with pytest.raises(MalformedReplyError, match="rent sysvar of 0 bytes"):
            await read_cluster(rpc)


async def _nothing(addresses):
    return 1, [None] * len(addresses)


@pytest.mark.parametrize(("answer", "said"), [("n", "interrupted"), ("y", "--validator")])
def test_somebody_at_a_terminal_is_asked(chain, owner, in_folder, answer, said):
    """A yes goes on to what the embedded chain cannot do; after a no nothing is looked at."""
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = process("program", "deploy", "--key", owner, "--rpc", chain.rpc_url, stdin=theirs)
    assert done.returncode != 0
    assert "4.2" in done.stderr, "the cost stands above the question"
    assert "on a local cluster for" in done.stderr
    assert said in done.stderr
    assert not (in_folder / "troth-program.json").exists(), "no key of a program that never was"


def test_a_program_without_authority_is_closed_by_nobody(cli, chain, owner):
    close = ("program", "close", ELSEWHERE, "--key", owner, "--yes", "--rpc", chain.rpc_url)
    assert "nobody can close" in cli.refused(*close)["found"]
