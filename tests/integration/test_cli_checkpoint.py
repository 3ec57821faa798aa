"""`troth checkpoint` against a run whose two members wait in a pause and serve its weights."""

import importlib
import json
import re
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from support.cli import imported_by
from support.network import Bench, processes
from support.waiting import wait_for

from troth_client.checkpoint.folder import CheckpointFolder, Draft
from troth_client.model.export import load_export
from troth_client.model.weights import build

pytestmark = pytest.mark.processes
SETTINGS = ("chain.commit_slots=400", "chain.attest_slots=400", "chain.warmup_slots=800")
SETTINGS += ("chain.vesting_slots=9000", "chain.unbond_slots=90000", "chain.checkpoint_every=2")
SETTINGS += ("chain.p_base_ppm=0", "chain.p_new_ppm=0", "chain.max_pause_slots=40000")
SETTINGS += ("schedule.rounds=100",)  # and a pause that outlasts the test
NORM = "model.norm.weight"


class Stored:
    """A paused run, the round of its newest checkpoint, and how to ask about it."""

    def __init__(self, bench: Bench, run: str) -> None:
        self.bench, self.run = bench, run
        self.config = bench.folder / "run.toml"
        self.newest = 0

    def of_run(self, word, *more):
        return ("checkpoint", word, self.run, "--rpc", self.bench.rpc, *more)

    def verify(self, path, *more):
        return ("checkpoint", "verify", path, "--rpc", self.bench.rpc, *more)

    def json(self, *arguments):
        return self.bench.cli.json(*arguments)

    def refused(self, *arguments):
        return self.bench.cli.refused(*arguments)

    def fetch(self, out):
        return self.json(*self.of_run("fetch", "--config", self.config, "--out", out))


@pytest.fixture
def stored(bench):
    """Two members train, pass a checkpoint, and wait in a pause; everything stands still."""
    with processes(bench) as begin:
        run = bench.create(*SETTINGS)
        found = Stored(bench, run)
        found.members = [begin(bench.join_arguments(run, name), name) for name in ("a", "b")]
        found.members[0].wait_for("checkpoint_made")
        bench.cli.ok(*bench.of_run("run", "pause", run=run, key="authority"))

        def paused():
            shown = bench.cli.json(*bench.of_run("run", "show", run=run))
            found.newest = shown["root_round"]
            return shown["phase"] == "paused"

        wait_for(paused, 120, lambda: found.members[0].notes()[-2_000:])
        for one in found.members:
            one.wait_for(f"checkpoint_made round={found.newest} ")

        def announced():
            return found.json(*found.of_run("list"))["checkpoints"][-1]["num_announcers"] == 2

        wait_for(announced, 60)
        yield found


@pytest.mark.long(reason="a run of processes, and transformers")
def test_weights_are_listed_shown_fetched_verified_and_exported(stored):
    listed_and_shown(stored)
    folder = fetched(stored)
    verified(stored, folder)
    export = exported(stored, folder)
    logits_equal_those_of_transformers(export)
    text_goes_in_and_comes_out(export)
    damaged_weights_are_named(stored, folder, export)
    weights_of_others_are_named(stored, folder)
    newcomer_is_told(stored)
    for one in stored.members:
        one.kill()
    nobody_serves(stored, folder)
    newcomer_is_warned(stored)


def checks_of(values):
    return {one["check"]: one for one in values["checks"]}


def newcomer_is_told(stored):
    bench = stored.bench
    found = checks_of(stored.json(*bench.join_arguments(stored.run, "late"), "--check"))
    assert found["weights"]["level"] == "ok"
    assert found["weights"]["values"]["round"] == stored.newest
    assert found["weights"]["values"]["bytes_per_second"] > 0
    assert found["time"]["values"]["rounds_left"] <= 100
    asked = bench.cli("doctor", stored.config, "--rpc", bench.rpc, "--device", "cpu", "--json")
    holders = checks_of(asked.json)["holders"]
    assert holders["values"]["holders"] == 2
    assert holders["values"]["silent"] == 0


def newcomer_is_warned(stored):
    """Nobody is left who serves the weights: nothing is paid for a way that leads nowhere."""
    bench = stored.bench
    before = bench.balance("late")
    arguments = bench.join_arguments(stored.run, "late", anyway=())
    error = stored.refused(*arguments, "--check")
    assert checks_of(error)["weights"]["kind"] == "CheckpointGoneError"
    assert checks_of(error)["time"]["level"] == "not tested"
    found = stored.json(*arguments, "--check", "--anyway")
    assert checks_of(found)["weights"]["level"] == "refused"
    assert bench.balance("late") == before
    asked = bench.cli("doctor", stored.config, "--rpc", bench.rpc, "--device", "cpu", "--json")
    assert asked.code == 1
    assert checks_of(asked.json)["holders"]["level"] == "problem"


def listed_and_shown(stored):
    listed = stored.json(*stored.of_run("list"))
    assert [one["is_newest"] for one in listed["checkpoints"]][-1] is True
    newest = listed["checkpoints"][-1]
    assert newest["round"] == stored.newest
    shown = stored.json(*stored.of_run("show", "--config", stored.config))
    assert shown["root"] == newest["root"]
    assert shown["do_manifests_agree"] is True
    assert [one["index"] for one in shown["announcers"]] == [0, 1]
    assert all(one["endpoint"].startswith("http://127.0.0.1:") for one in shown["announcers"])
    text = stored.bench.cli.ok(*stored.of_run("show")).out
    assert newest["root"] in text
    header = next(line for line in text.splitlines() if "endpoint" in line)
    assert re.findall(r"\w+", header) == ["index", "owner", "endpoint", "manifest"]
    assert list(shown["announcers"][0]) == ["index", "owner", "endpoint", "manifest_hash"]
    assert "All of them announced the same manifest." in text
    assert "newest" in stored.bench.cli.ok(*stored.of_run("list")).out
    first = listed["checkpoints"][0]["round"]
    assert stored.json(*stored.of_run("show", "--round", first))["round"] == first
    error = stored.refused(*stored.of_run("show", "--round", 999))
    assert error["kind"] == "CheckpointMissingError"
    done, imported = imported_by(["torch"], *stored.of_run("list"))
    assert done.code == 0, done.err
    assert imported == set()


def fetched(stored):
    """The folder of a whole fetch, which went on with what an interrupted one had left."""
    out = stored.bench.folder / "fetched"
    first = stored.fetch(out)
    assert first["round"] == stored.newest
    different = {one.hash: one.num_bytes for one in CheckpointFolder.open(out).pieces.pieces()}
    assert first["fetched_bytes"] == sum(different.values()) > 0
    assert sorted(one.name for one in out.iterdir()) == [
        "manifest.json",
        "model-00001-of-00001.safetensors",
    ]
    assert stored.fetch(out)["fetched_bytes"] == 0
    # A killed fetch leaves a draft without a manifest, here with one tensor not yet there.
    folder = CheckpointFolder.open(out)
    piece = next(one for one in folder.pieces.pieces() if one.tensor == NORM)
    (out / "manifest.json").unlink()
    spoil(out / "model-00001-of-00001.safetensors", NORM)
    out.rename(out.with_name("fetched.part"))
    again = stored.bench.cli.ok(*stored.of_run("fetch", "--out", out))
    assert f"fetched bytes  {piece.num_bytes}\n" in again.out
    assert first["root"] in again.out
    assert "fetching" in again.err
    other = stored.bench.folder / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    error = stored.refused(
        *stored.of_run("fetch", "--config", stored.config, "--out", other, "--patience", 1)
    )
    assert error["kind"] == "OutputFileError"
    assert (other / "thesis.txt").read_text() == "mine"
    part = stored.bench.folder / "draft.part"
    shutil.move(other, part)
    told = ("--config", stored.config, "--out", part.with_name("draft"))
    assert stored.refused(*stored.of_run("fetch", *told))["kind"] == "OutputFileError"
    assert (part / "thesis.txt").read_text() == "mine"
    (part / "thesis.txt").unlink()
    with Draft(part.with_name("draft"), folder.pieces):
        assert stored.refused(*stored.of_run("fetch", *told))["kind"] == "FolderInUseError"
    return out


def spoil(file, tensor):
    """Change one byte of a tensor where it lies in a file."""
    data = bytearray(file.read_bytes())
    size = int.from_bytes(data[:8], "little")
    begin = json.loads(bytes(data[8 : 8 + size]))[tensor]["data_offsets"][0]
    data[8 + size + begin] ^= 1
    file.write_bytes(bytes(data))


def verified(stored, folder):
    found = stored.json(*stored.verify(folder))
    assert found["is_verified"] is True
    assert found["run"] == stored.run
    assert found["round"] == stored.newest
    assert stored.bench.cli.ok(*stored.verify(folder)).out.splitlines()[-1] == "PASS"
    done, imported = imported_by(["torch"], *stored.verify(folder))
    assert done.code == 0, done.err
    assert imported == set()


def exported(stored, folder):
    out = stored.bench.folder / "model"
    command = ("checkpoint", "export", folder, "--out", out, "--rpc", stored.bench.rpc)
    values = stored.json(*command, "--data", stored.bench.data)
    assert values["has_tokenizer"] is True, "a token is one byte, and the export says so"
    assert sorted(one.name for one in out.iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    card = (out / "README.md").read_text()
    assert values["root"] in card
    assert stored.run in card
    assert stored.json(*stored.verify(out))["root"] == values["root"]
    model = out / "model.safetensors"
    assert stored.json(*stored.verify(model))["round"] == stored.newest
    again = stored.bench.folder / "again"
    secret = f"{stored.bench.rpc}/?api-key=hush"
    said = stored.bench.cli.ok("checkpoint", "export", folder, "--out", again, "--rpc", secret).out
    assert f"troth checkpoint verify {again} --rpc {stored.bench.rpc}\n" in said
    third = ("checkpoint", "export", out, "--out", stored.bench.folder / "third")
    assert stored.json(*third, "--rpc", stored.bench.rpc)["has_tokenizer"] is True
    from_run = stored.bench.folder / "from-run"
    told = ("checkpoint", "export", stored.run, "--out", from_run, "--rpc", stored.bench.rpc)
    tokenizer = stored.bench.folder / "tokenizer.json"
    tokenizer.write_text("{}")
    told += ("--tokenizer", tokenizer)
    assert stored.json(*told)["has_tokenizer"] is True
    assert bytes_of(load_file(from_run / "model.safetensors")) == bytes_of(load_file(model))
    assert (from_run / "tokenizer.json").read_text() == "{}"
    assert not list(stored.bench.folder.glob("from-run.checkpoint-*"))
    return out


def bytes_of(tensors):
    return {name: value.tobytes() for name, value in tensors.items()}


def logits_equal_those_of_transformers(folder):
    transformers = importlib.import_module("transformers")  # takes seconds
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder).float().eval()
    config, weights, facts = load_export(folder)
    assert facts["troth_config"].startswith('{"data"')
    batch = torch.arange(60).reshape(2, 30) * 4
    with torch.no_grad():
        expected, found = theirs(batch).logits, build(config, weights)(batch)
    assert expected.std() > 0.01
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=2e-5)


def text_goes_in_and_comes_out(folder):
    transformers = importlib.import_module("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    asked = tokenizer("def ", return_tensors="pt")
    assert asked["input_ids"].tolist() == [list(b"def ")]
    made = model.generate(asked["input_ids"], max_new_tokens=8, do_sample=False)
    assert tokenizer.decode(made[0]).startswith("def ")
    assert made.shape == (1, 12)


def damaged_weights_are_named(stored, folder, export):
    """One changed byte names its tensor, from the manifest or from what members serve."""
    shard = "model-00001-of-00001.safetensors"
    copy = stored.bench.folder / "copy"
    for source, file in ((folder, shard), (export, "model.safetensors")):
        shutil.copytree(source, copy)
        spoil(copy / file, NORM)
        error = stored.refused(*stored.verify(copy))
        assert error["kind"] == "DifferentWeightsError"
        assert error["name"] == NORM
        assert f"1 of {len(load_file(folder / shard))} tensors differ" in error["found"]
        shutil.rmtree(copy)
    shutil.copytree(folder, copy)
    error = stored.refused(*stored.verify(copy, "--round", stored.newest - 1))
    assert error["name"] == "lm_head.weight", "a closed round without a Checkpoint account"
    error = stored.refused(*stored.verify(copy, "--round", stored.newest + 5))
    assert error["kind"] == "CheckpointMissingError"
    spoil(copy / shard, NORM)
    nothing = stored.bench.folder / "nothing"
    told = ("checkpoint", "export", copy, "--out", nothing, "--rpc", stored.bench.rpc)
    assert stored.refused(*told)["kind"] == "DifferentWeightsError"
    assert not nothing.exists()
    shutil.rmtree(copy)
    error = stored.refused("checkpoint", "export", copy, "--out", copy, "--rpc", stored.bench.rpc)
    assert error["kind"] == "InputError"


def weights_of_others_are_named(stored, folder):
    """The program of a manifest and the config of a run are compared before the weights are."""
    copy = stored.bench.folder / "foreign"
    shutil.copytree(folder, copy)
    manifest = copy / "manifest.json"
    program = json.loads(manifest.read_text())["program"]
    manifest.write_text(manifest.read_text().replace(program, "1" * 32))
    error = stored.refused(*stored.verify(copy))
    assert error["kind"] == "OtherRunError"
    assert program in error["expected"]
    other = stored.bench.create("schedule.lr_nano=1", name="other")
    theirs = ("--config", stored.bench.folder / "other.toml")
    told = ("--config", stored.config, "--out", copy.with_name("new"))
    for arguments in (
        stored.verify(folder, "--run", other),
        stored.verify(folder, *theirs, "--run", stored.run),
        stored.of_run("show", *theirs),
        ("checkpoint", "fetch", other, "--rpc", stored.bench.rpc, *told),
    ):
        error = stored.refused(*arguments)
        assert error["kind"] == "OtherRunError"
        assert "the config with the hash" in error["expected"]


def nobody_serves(stored, folder):
    """Without members a fetch gives up, and a bare file needs to be told where it is from."""
    out = stored.bench.folder / "late"
    told = ("--config", stored.config, "--out", out, "--patience", 1)
    error = stored.refused(*stored.of_run("fetch", *told))
    assert error["kind"] == "CheckpointGoneError"
    assert not out.exists()
    error = stored.refused(*stored.of_run("fetch", *told[2:]))
    assert error["kind"] == "RunFilesGoneError"
    assert not out.exists()
    bare = stored.bench.folder / "bare.safetensors"
    tensors = load_file(folder / "model-00001-of-00001.safetensors")
    save_file(tensors, bare)
    asked = {"--config": (), "--run": ("--config", plain(stored))}
    asked["--round"] = ("--config", stored.config)
    for option, given in asked.items():
        assert option in stored.refused(*stored.verify(bare, *given))["next_step"]
    named = ("--run", stored.run, "--round", stored.newest, "--config", stored.config)
    assert stored.json(*stored.verify(bare, *named))["is_verified"] is True
    tensors[NORM] = tensors[NORM] + np.float32(1)
    save_file(tensors, bare)
    error = stored.refused(*stored.verify(bare, *named))
    assert error["kind"] == "DifferentWeightsError"
    assert "nobody serves the list of its pieces" in error["found"]
    assert "name" not in error


def plain(stored):
    """The run's config without the table that names the run."""
    path = stored.bench.folder / "plain.toml"
    path.write_text(re.sub(r"\[run\]\n(.+\n)+", "", stored.config.read_text()))
    return path


def test_a_run_without_checkpoints_says_so(bench):
    run = bench.create(name="fresh")
    done = bench.cli.ok("checkpoint", "list", run, "--rpc", bench.rpc)
    assert done.out == "This run has stored no checkpoint yet.\n"
    error = bench.cli.refused("checkpoint", "show", run, "--rpc", bench.rpc)
    assert error["kind"] == "CheckpointMissingError"
