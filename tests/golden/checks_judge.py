"""How `troth_attestation` answers each golden vector. Next: checks_rules.py."""

from typing import Any

import numpy as np

from troth_attestation import header, merkle, possession, state

Given = dict[str, Any]
unhex = bytes.fromhex


def pattern(size: int, seed: int) -> Any:
    """Return the fp32 values that the generator writes down by a formula only."""
    return (np.arange(size, dtype=np.int64) * seed % 8191).astype(np.float32)


def py_merkle(given: Given) -> Any:
    tree = merkle.tree(map(unhex, given["leaves"]))
    siblings = tree.path(given["index"]).siblings
    return {"root": tree.root.hex(), "path": [node.hex() for node in siblings]}


def py_tensor(given: Given) -> Any:
    return state.tensor_root(pattern(given["size"], given["seed"])).hex()


def py_state(given: Given) -> Any:
    tensors = {
        name: np.frombuffer(unhex(tensor["data"]), "<f4").reshape(tensor["dims"])
        for name, tensor in given["tensors"].items()
    }
    config = unhex(given["config_hash"])
    return state.state_root(tensors, given["round"], given["cursor"], config).hex()


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


CHECKS = {
    check.__name__: check
    for check in (
        py_merkle,
        py_tensor,
        py_state,
        py_residual,
        py_data,
        py_possession,
        py_header,
    )
}
