"""Every golden vector of the judge; and every vector file in use."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from troth_attestation import openings, sampling, sketch, verdict

REPOSITORY = Path(__file__).parents[3]
FOLDER = REPOSITORY / "tests/golden/audit"
unhex = bytes.fromhex


def py_audit_sample(given):
    rates = sampling.Rates(
        given["p_base_ppm"], given["p_new_ppm"], given["cap"], given["is_doubled"]
    )
    sigma = unhex(given["sigma"])
    return list(sampling.sampled_targets(sigma, given["included"], given["is_new"], rates))


def py_audit_seats(given):
    where = unhex(given["sigma"]), given["target"]
    seats = sampling.seats_of(*where, given["eligible"])
    for place, witness in enumerate(seats):
        assert sampling.seat_number(*where, witness, given["eligible"]) == place
    return list(seats)


def py_audit_committee(given):
    return list(
        sampling.committee(unhex(given["seed"]), given["eligible"], given["barred"], given["seats"])
    )


def py_audit_case_seed(given):
    slot_hash, run = unhex(given["slot_hash"]), unhex(given["run"])
    return sampling.case_seed(slot_hash, run, given["round"], given["target"], given["kind"]).hex()


def py_audit_tiles(given):
    return list(sampling.tile_draws(unhex(given["sigma"]), given["target"], given["num_tiles"]))


def py_audit_openings_root(given):
    data = unhex(given["repeated"]) * (given["size"] // 32 + 1)
    return openings.openings_root(data[: given["size"]]).hex()


def py_audit_verdict(given):
    fields = {n: unhex(v) if isinstance(v, str) else v for n, v in given.items() if n != "salt"}
    fields["kind"] = verdict.VerdictKind(given["kind"])
    return verdict.Statement(**fields).commit(unhex(given["salt"])).hex()


def py_audit_sketch(given):
    values = np.array(given["numerators"], np.float32) / np.float32(2 ** given["shift"])
    made = sketch.sketch(values, unhex(given["sigma"]), given["target"])
    assert sketch.decode(sketch.encode(made)) == made
    return {"sketch": list(made), "hash": sketch.sketch_hash(made).hex()}


CHECKS = {name: check for name, check in globals().items() if name.startswith("py_audit_")}


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_each_case_gives_the_recorded_answer(name):
    cases = json.loads((FOLDER / f"{name}.json").read_text(encoding="ascii"))["cases"]
    assert cases
    for number, case in enumerate(cases):
        assert CHECKS[name](case["in"]) == case["out"], f"{name}, case {number}"


def test_every_vector_file_is_answered_here():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CHECKS)


def test_the_files_are_what_the_generator_writes(tmp_path):
    generator = REPOSITORY / "scripts/gen/vector_audit.py"
    subprocess.run([sys.executable, generator, "--out", tmp_path], check=True)
    for path in FOLDER.glob("*.json"):
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name
