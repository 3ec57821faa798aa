"""`troth run create --from DIR`: a run of real processes that starts from a folder of weights."""

import shutil

import pytest
import torch
from support.network import CONFIG, SOL, processes
from support.starts import NORM, tensors_of, write_shards, write_start
from tokenizers import Tokenizer, models, pre_tokenizers

from troth_coordinator.config_files import load_config

pytestmark = pytest.mark.processes
MODEL = load_config([CONFIG]).config.model
QUICK = ("chain.commit_slots=400", "chain.attest_slots=400", "chain.warmup_slots=800")
QUICK += ("chain.p_base_ppm=0", "chain.p_new_ppm=0", "schedule.rounds=3")
QUICK += ("schedule.warmup_rounds=0", "chain.vesting_slots=9000", "chain.unbond_slots=9000")


def small(tensors):
    return {name: value * 0.02 for name, value in tensors.items()}


@pytest.fixture
def base(bench):
    """A folder with the weights of the preset's model, in halves and in two files."""
    folder = bench.folder / "base"
    write_shards(folder, MODEL, small(tensors_of(MODEL, torch.bfloat16)))
    return folder


def create(bench, base, *more):
    return (*bench.create_arguments(*QUICK), "--from", base, *more)


def joins(bench, run, key, *more):
    """A join over the run's file alone, as a stranger has it."""
    file, state = bench.folder / "run.toml", bench.folder / f"state-{key}"
    shared = ("--data", bench.data, "--state", state, "--device", "cpu", "--rpc", bench.rpc)
    return ("join", file, "--key", bench.key(key), *shared, "--anyway", *more)


@pytest.mark.long(reason="a run of two processes; test_inprocess_start.py has one in process")
def test_two_processes_train_from_a_folder_that_only_one_of_them_has(bench, base):
    done = bench.cli.ok(*create(bench, base))
    assert "BF16 became F32, exactly" in done.err
    assert "tied weights stay tied" in done.err
    text = (bench.folder / "run.toml").read_text()
    assert 'start = "base"' in text
    assert 'weights = "given"' in text
    run = text.partition('address = "')[2].partition('"')[0]
    with processes(bench) as begin:
        one = begin(joins(bench, run, "a"), "one")
        one.wait_for("joined")
        shutil.rmtree(base)
        two = begin(joins(bench, run, "b"), "two")
        for process in (one, two):
            code, values = process.end()
            assert code == 0, process.notes()
            assert values["is_finished"] is True
        before, _, after = two.notes().partition("fetched round=0")
        assert "joined" in after and "joined" not in before, "the weights come before the deposit"
        assert "fetched round=0" not in one.notes()
    shown = bench.cli.json(*bench.of_run("run", "show", run=run))
    assert shown["root"] == values["root"]
    check = ("checkpoint", "verify", values["weights"], "--rpc", bench.rpc)
    assert bench.cli.json(*check)["root"] == values["root"]


def test_the_same_command_completes_and_other_weights_make_no_second_run(bench, base):
    first = bench.cli.json(*create(bench, base))
    assert bench.cli.json(*create(bench, base))["genesis_root"] == first["genesis_root"]
    other = write_start(bench.folder / "other", MODEL, small(tensors_of(MODEL)))
    error = bench.cli.refused(*create(bench, other, "--out", bench.folder / "again.toml"))
    assert error["kind"] == "OtherRunError"


def test_weights_that_do_not_fit_are_refused_before_anything_is_paid(bench, base):
    before = bench.key("authority") and bench.balance("authority")
    error = bench.cli.refused(*create(bench, base, "--set", "model.hidden_size=128"))
    assert error["kind"] == "StartError"
    assert "model.hidden_size = 128" in error["expected"]
    assert error["next_step"] == f"troth run init --from {base} writes a [model] section that fits."
    spoilt = small(tensors_of(MODEL))
    spoilt[NORM][0] = float("nan")
    odd = write_start(bench.folder / "odd", MODEL, spoilt)
    assert "1 of 64 that are NaN" in bench.cli.refused(*create(bench, odd))["found"]
    missing = bench.cli.refused(*create(bench, bench.folder / "nothing"))
    assert missing["kind"] == "ModelConfigError"
    assert bench.balance("authority") == before


def test_a_creator_hears_of_the_tokenizer_of_the_weights_and_needs_that_of_the_data(bench, base):
    done = bench.cli.ok(*create(bench, base, "--dry-run"))
    assert f"no {base / 'tokenizer.json'} to compare with" in done.err
    (base / "tokenizer.json").write_text("{}")
    done = bench.cli.ok(*create(bench, base, "--dry-run"))
    assert f"another tokenizer than {base / 'tokenizer.json'}" in done.err
    words = bench.folder / "words.json"
    made = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(words))
    data = bench.folder / "words"
    length = load_config([CONFIG]).config.data.sequence_tokens
    shape = ("--tokenizer", words, "--sequence-tokens", length)
    bench.cli.ok("data", "prepare", "--stdlib", "--limit-bytes", 50_000, *shape, "--out", data)
    (data / "tokenizer.json").unlink()
    error = bench.cli.refused(*create(bench, base, "--data", data))
    assert error["expected"] == "tokenizer.json with the hash that the data set names"
    assert error["subject"] == str(data)


def test_a_joiner_whom_nobody_can_give_the_start_pays_nothing(bench, base):
    run = bench.cli.json(*create(bench, base))["run"]
    shutil.rmtree(base)
    *words, _anyway = joins(bench, run, "a")
    error = bench.cli.refused(*words)
    assert error["kind"] == "JoinRefusedError"
    assert error["subject"] == "weights"
    assert (
        "join after a member that has them, or name the folder with --start" in error["next_step"]
    )
    assert bench.balance("a") == 10 * SOL


def test_settings_that_ask_for_given_weights_need_the_folder(bench):
    error = bench.cli.refused(*bench.create_arguments("start.weights=given"))
    assert error["subject"] == "--from"
    assert "remove the key" in error["next_step"]


def test_a_run_that_draws_its_weights_takes_no_start(bench, base):
    run = bench.create()
    error = bench.cli.refused(*bench.join_arguments(run, "a"), "--start", base)
    assert error["subject"] == "--start"


def test_a_joiner_with_another_start_is_refused_before_its_deposit(bench, base):
    run = bench.cli.json(*create(bench, base))["run"]
    other = write_start(bench.folder / "other", MODEL, small(tensors_of(MODEL)))
    with processes(bench) as begin:
        process = begin(joins(bench, run, "a", "--start", other), "one")
        assert process.code() == 1, process.notes()
    assert "genesis root" in process.notes()
    assert bench.cli.json(*bench.of_run("run", "show", run=run))["num_participants"] == 0
