"""How `troth_attestation` answers each golden vector. Next: checks_rules.py."""

from typing import Any

import numpy as np

from troth_attestation import (
    bulk,
    cases,
    header,
    merkle,
    openings,
    panel,
    possession,
    quorum,
    sampling,
    sketch,
    slashing,
    state,
    verdict,
)
from troth_attestation.errors import ReportError
from troth_attestation.pieces import PieceList, StateName, pieces_of

Given = dict[str, Any]
unhex = bytes.fromhex


def pattern(size: int, seed: int) -> Any:
    """Return the fp32 values that the generator writes down by a formula only."""
    return (np.arange(size, dtype=np.int64) * seed % 8191).astype(np.float32)


def py_merkle(given: Given) -> Any:
    tree = merkle.tree(map(unhex, given["leaves"]))
    siblings = tree.path(given["index"]).siblings
    return {"root": tree.root.hex(), "path": [node.hex() for node in siblings]}


def py_bulk_leaf(given: Given) -> Any:
    repeated, size = unhex(given["repeated"]), given["size"]
    return bulk.leaf_hash((repeated * (size // 32 + 1))[:size]).hex()


def py_tensor(given: Given) -> Any:
    return state.tensor_root(pattern(given["size"], given["seed"])).hex()


def py_state(given: Given) -> Any:
    tensors = {
        name: np.frombuffer(unhex(tensor["data"]), "<f4").reshape(tensor["dims"])
        for name, tensor in given["tensors"].items()
    }
    config = unhex(given["config_hash"])
    return state.state_root(tensors, given["round"], given["cursor"], config).hex()


def py_pieces(given: Given) -> Any:
    tensors = {
        name: pattern(int(np.prod(dims)), given["seed"]).reshape(dims)
        for name, dims in given["shapes"].items()
    }
    name = StateName(given["round"], given["cursor"], unhex(given["config_hash"]))
    made = pieces_of(tensors, name)
    assert PieceList.decode(made.encode(), {n: v.shape for n, v in tensors.items()}, name) == made
    return {"list": made.encode().hex(), "root": made.root.hex()}


def py_residual(given: Given) -> Any:
    tiles = given["tiles"]
    root = state.residual_root(pattern(tiles * 4096, given["seed"]).reshape(tiles, 64, 64))
    if given["seed"] == 0:
        assert root == state.zero_residual_root(tiles)
    return root.hex()


def py_data(given: Given) -> Any:
    return state.data_root(given["ids"]).hex()


def py_possession(given: Given) -> Any:
    payloads = {int(index): unhex(data) for index, data in given["payloads"].items()}
    run, owner = unhex(given["run"]), unhex(given["owner"])
    return possession.possession(run, given["round"], owner, payloads).hex()


def py_header(given: Given) -> Any:
    made = header.Header(**{k: unhex(v) if isinstance(v, str) else v for k, v in given.items()})
    hash_ = header.header_hash(made)
    assert header.decode(header.encode(made)) == made
    signed = header.commit_message(made.run, made.round, made.index, hash_)
    return {"bytes": header.encode(made).hex(), "hash": hash_.hex(), "signed": signed.hex()}


def audit_sample(given: Given) -> Any:
    keys = ("p_base_ppm", "p_new_ppm", "limit", "is_doubled")
    rates = sampling.Rates(*(given[key] for key in keys))
    payloads = sampling.Payloads(given["included"], given["is_new"], given["on_probation"])
    return list(sampling.sampled_targets(unhex(given["sigma"]), payloads, rates))


def audit_limit(given: Given) -> Any:
    return sampling.limit(**given)


def audit_seats(given: Given) -> Any:
    where = unhex(given["sigma"]), given["target"]
    seats = sampling.seats_of(*where, given["eligible"])
    for place, witness in enumerate(seats):
        assert sampling.seat_number(*where, witness, given["eligible"]) == place
    return list(seats)


def audit_jury(given: Given) -> Any:
    heard = given["seats"], given["accusers"]
    return list(sampling.jury(unhex(given["seed"]), given["eligible"], given["barred"], *heard))


def audit_case_seed(given: Given) -> Any:
    slot_hash, run = unhex(given["slot_hash"]), unhex(given["run"])
    return sampling.case_seed(slot_hash, run, given["round"], given["target"], given["kind"]).hex()


def statement_fields(given: Given) -> Given:
    fields = {k: unhex(v) if isinstance(v, str) else v for k, v in given.items() if k != "salt"}
    return fields | {"kind": verdict.VerdictKind(given["kind"])}


def audit_verdict(given: Given) -> Any:
    made = verdict.Statement(**statement_fields(given))
    return made.commit(unhex(given["salt"])).hex()


def audit_vote(given: Given) -> Any:
    return cases.Vote(**statement_fields(given)).commit(unhex(given["salt"])).hex()


def sketch_pair(given: Given) -> Any:
    first, second = given["first"], given["second"]
    factor = given["factor"]
    assert sketch.differ(first, second, factor) == sketch.differ(second, first, factor)
    hashes = [sketch.sketch_hash(one).hex() for one in (first, second)]
    return {"differ": sketch.differ(first, second, factor), "hashes": hashes}


def kind_of(number: int) -> verdict.VerdictKind | None:
    """Return what the byte on chain stands for."""
    return verdict.VerdictKind(number) if number else None


def audit_panel(given: Given) -> Any:
    reports = [
        panel.Report(committed, kind_of(kind), None if value is None else (value,) * 64)
        for committed, kind, value in given["reports"]
    ]
    judges = panel.Panel(reports, given["factor"])
    try:
        settled = judges.outcome(given["num_available"])
    except ReportError:
        return None
    case = quorum.CaseOutcome(given["case"]) if given["case"] else None
    faults = judges.faults(case)
    jurors = [judges.paid_jurors(case, is_work=work) if case else () for work in (True, False)]
    return {
        "outcome": settled,
        "outvoted": sorted(judges.outvoted),
        "paid": sorted(judges.paid_seats()),
        "faults": [faults.get(seat, 0) for seat in range(len(reports))],
        "jurors": [sorted(places) for places in jurors],
    }


def case_outcome(given: Given) -> Any:
    votes = [kind_of(number) for number in given["votes"]]
    return quorum.case_outcome(votes, is_work=given["is_work"])


def intent_of(given: Given, funds: slashing.Funds) -> slashing.SlashIntent:
    """Return the penalty that a vector asks for."""
    prices = slashing.Prices(*given["prices"])
    match given["kind"]:
        case "work":
            return slashing.work(funds, is_repeated=given["is_repeated"])
        case "no_openings":
            return slashing.no_openings(funds, given["price"], given["doublings"])
        case "seat":
            fault, is_second = quorum.SeatFault(given["seat_fault"]), given["is_second"]
            return slashing.seat(fault, funds, prices, is_second=is_second)
        case "vouched_for_malformed":
            return slashing.vouched_for_malformed()
        case kind:
            intent: slashing.SlashIntent = getattr(slashing, kind)(funds)
            return intent


def slash(given: Given) -> Any:
    funds = slashing.Funds(*given["funds"])
    intent = intent_of(given, funds)
    taken = slashing.take(intent, funds)
    return {
        "small": intent.is_small,
        "unvested": intent.takes_unvested,
        "strike": intent.is_strike,
        "barred": intent.is_barred,
        "acquitted": intent.pays_acquitted,
        "fault": int(intent.fault.value.removeprefix("P")),
        "principal": str(intent.principal),
        "taken": [taken.claimable, taken.unvested, taken.stake, taken.unbonding],
        "shortfall": taken.shortfall,
    }


def parts(split: slashing.Split) -> Any:
    return [split.challenger, split.acquitted, split.burned]


def slash_split(given: Given) -> Any:
    if given["acquittal"] is not None:
        return parts(slashing.fine(given["total"], given["acquittal"]))
    return parts(slashing.split(given["total"], has_bond=given["has_bond"]))


def failed_case(given: Given) -> Any:
    return parts(slashing.failed_case(given["bond"]))


def py_audit_tiles(given: Given) -> Any:
    counts = given["num_tiles"], given["count"]
    return list(sampling.drawn_tiles(unhex(given["sigma"]), given["target"], *counts))


def py_audit_openings_root(given: Given) -> Any:
    data = unhex(given["repeated"]) * (given["size"] // 32 + 1)
    return openings.openings_root(data[: given["size"]]).hex()


def py_audit_sketch(given: Given) -> Any:
    values = np.array(given["numerators"], np.float32) / np.float32(2 ** given["shift"])
    made = sketch.sketch(values, unhex(given["sigma"]), given["target"])
    assert sketch.decode(sketch.encode(made)) == made
    return {"sketch": list(made), "hash": sketch.sketch_hash(made).hex()}


CHECKS = {
    check.__name__: check
    for check in (
        py_merkle,
        py_bulk_leaf,
        py_tensor,
        py_state,
        py_pieces,
        py_residual,
        py_data,
        py_possession,
        py_header,
        audit_sample,
        audit_limit,
        audit_seats,
        audit_jury,
        audit_case_seed,
        audit_verdict,
        audit_vote,
        sketch_pair,
        audit_panel,
        case_outcome,
        slash,
        slash_split,
        failed_case,
        py_audit_tiles,
        py_audit_openings_root,
        py_audit_sketch,
    )
}
