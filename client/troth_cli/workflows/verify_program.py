"""Code on chain against an image: the same bytes, or the first that differs.

Owns: which image it is compared with, and the words for the outcome. Never: reads a chain.
Next: `deployed.py`; `troth_coordinator.chain.program_image` for images made out to an id.
"""

import contextlib
from dataclasses import dataclass

from troth_cli.view.output import Facts, Json
from troth_cli.view.program import program_values, who_may_change
from troth_cli.workflows.deployed import DeployedProgram
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.chain.program_image import (
    IMAGES,
    code_hash,
    first_difference,
    made_out,
    packaged_image,
    sbpf_version,
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A program on chain and the image that is nearest to it. offset: None where they are equal."""

    found: DeployedProgram
    name: str
    image: bytes
    offset: int | None

    @property
    def is_equal(self) -> bool:
        """Whether the code is the image, apart from zeros behind it."""
        return self.offset is None


def compare(found: DeployedProgram, named: bytes | None, name: str = "") -> Comparison:
    """Compare with a file's bytes, made out to the id if they can be, or with packaged images.

    Of several images the one counts that agrees for longest.
    """
    images = {f"packaged {one}": packaged_image(one, found.address) for one in IMAGES}
    if named is not None:
        images = {name: named}
        with contextlib.suppress(ArtifactError):
            images[f"{name} at this id"] = made_out(named, found.address)
    compared = [
        Comparison(found, label, image, first_difference(found.code, image))
        for label, image in images.items()
    ]
    return max(compared, key=lambda one: len(one.image) if one.offset is None else one.offset)


def comparison_values(one: Comparison) -> dict[str, Json]:
    """Return a comparison for JSON."""
    return {
        **program_values(one.found),
        "is_equal": one.is_equal,
        "image": one.name,
        "image_bytes": len(one.image),
        "image_sha256": code_hash(one.image),
        "first_difference": one.offset,
    }


def comparison_facts(one: Comparison) -> Facts:
    """Return a comparison for people."""
    length = len(one.image.rstrip(b"\0"))
    outcome = "equal" if one.is_equal else f"DIFFERENT from offset {one.offset} on"
    return Facts(
        [
            ("program id", one.found.address),
            ("compared with", f"{one.name}, sBPF {sbpf_version(one.image)}"),
            ("outcome", outcome),
            ("on chain", f"{one.found.num_code_bytes} bytes, {code_hash(one.found.code)}"),
            ("image", f"{length} bytes, {code_hash(one.image)}"),
            ("authority", who_may_change(one.found)),
        ]
    )
