"""The entries that a participant keeps on disk: one frozen class each, one record each.

Owns: the fields, and the translation to records and back.
Never: touches a file; `store.py` does.
Next: `store.py`, then `sealed.py` for the bytes of a record.

The residual is settled without a second write: the entry of round r holds u_r, and names the round
that it builds on. Once the chain shows the outcome, M is made from u_r if r was included, and from
the u before if it was not. The same holds when a correction strikes r later (protocol sections 4
and 5.2).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from troth_client.storage.sealed import Record

Tiles = NDArray[np.float32]


@dataclass(frozen=True)
class StoreIdentity:
    """The identity of a folder's state: run address, owner key and config hash, 32 bytes each.

    `genesis_hash` names the network, `created_slot` the life of the run there: a fresh network
    gives a run the same address. b"" and None are not compared.
    """

    run: bytes
    owner: bytes
    config_hash: bytes
    genesis_hash: bytes = b""
    created_slot: int | None = None

    def to_json(self) -> dict[str, str | int]:
        """Return what the folder keeps of it."""
        kept: dict[str, str | int] = {
            name: getattr(self, name).hex() for name in ("run", "owner", "config_hash")
        }
        if self.genesis_hash:
            kept["genesis_hash"] = self.genesis_hash.hex()
        if self.created_slot is not None:
            kept["created_slot"] = self.created_slot
        return kept


@dataclass(frozen=True)
class Submission:
    """Header and payload as bytes on the wire: our own, or those gathered from others.

    A restart sends exactly these again: the commitment on chain is the hash of this header.
    """

    round: int
    index: int
    header: bytes
    signature: bytes
    payload: bytes

    def to_record(self) -> Record:
        """As fields and byte arrays."""
        parts = {"header": self.header, "signature": self.signature, "payload": self.payload}
        arrays = {name: np.frombuffer(part, np.uint8) for name, part in parts.items()}
        return Record({"round": self.round, "index": self.index}, arrays)

    @classmethod
    def from_record(cls, record: Record) -> "Submission":
        """Inverse of `to_record`."""
        parts = {name: array.tobytes() for name, array in record.arrays.items()}
        return cls(_int(record, "round"), _int(record, "index"), **parts)


@dataclass(frozen=True)
class ResidualEntry:
    """u of one's own submission of `round`, float32 [tiles, 64, 64].

    `previous_round` and `root_before` are those of the header: the u that M was then.
    `root_after` is the residual root of u.
    """

    round: int
    previous_round: int
    root_before: bytes
    root_after: bytes
    u: Tiles

    def to_record(self) -> Record:
        """As fields and arrays."""
        fields: dict[str, str | int] = {
            "round": self.round,
            "previous_round": self.previous_round,
            "root_before": self.root_before.hex(),
            "root_after": self.root_after.hex(),
        }
        return Record(fields, {"u": _fp32(self.u)})

    @classmethod
    def from_record(cls, record: Record) -> "ResidualEntry":
        """Inverse of `to_record`; the arrays are read-only."""
        return cls(
            _int(record, "round"),
            _int(record, "previous_round"),
            _hex(record, "root_before"),
            _hex(record, "root_after"),
            record.arrays["u"].astype(np.float32, copy=False),
        )


@dataclass(frozen=True)
class WeightState:
    """w_r: the weights on which `round` trains, with the cursor before it and the state root."""

    round: int
    cursor: int
    state_root: bytes
    tensors: Mapping[str, NDArray[np.float32]]

    def to_record(self) -> Record:
        """As fields and arrays by tensor name."""
        fields: dict[str, str | int] = {
            "round": self.round,
            "cursor": self.cursor,
            "state_root": self.state_root.hex(),
        }
        return Record(fields, {name: _fp32(value) for name, value in self.tensors.items()})

    @classmethod
    def from_record(cls, record: Record) -> "WeightState":
        """Inverse of `to_record`; the arrays are read-only."""
        tensors = {
            name: value.astype(np.float32, copy=False) for name, value in record.arrays.items()
        }
        return cls(
            _int(record, "round"), _int(record, "cursor"), _hex(record, "state_root"), tensors
        )


def _fp32(value: NDArray[np.float32]) -> NDArray[np.float32]:
    if value.dtype != np.float32:
        raise TypeError(f"expected float32 state; found {value.dtype}. Residuals are never bf16.")
    return value


def _int(record: Record, name: str) -> int:
    return int(record.fields[name])


def _hex(record: Record, name: str) -> bytes:
    return bytes.fromhex(str(record.fields[name]))
