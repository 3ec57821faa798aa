"""The point that a replay has come to, as it is kept between two processes.

Owns: its fields and their JSON form. Never: weights: their files are named by the root in here.
Next: `auditor.py`, which makes and restores it.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from troth_audit.replay.findings import Finding
from troth_audit.replay.order import Count, Order
from troth_audit.replay.report import RoundLine

Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Saved(BaseModel):
    """A replay whose weights had the root of a closed round; all before it has been checked.

    It is of one ledger: `chain_hash` is that which the close of the round showed. It is of one
    order. `residuals` are the included rounds of each participant with the residual root after
    them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[2] = 2
    program: Hex32
    run: Hex32
    genesis_hash: Hex32
    chain_hash: Hex32
    order: Order
    round: Count
    cursor: Count
    root: Hex32
    applied: Count
    roots: Count
    checkpoints: Count
    headers: Count
    payloads: Count
    recomputed: tuple[Count, ...]
    residuals: dict[int, list[tuple[Count, Hex32]]]
    findings: list[Finding]
    lines: list[RoundLine]
