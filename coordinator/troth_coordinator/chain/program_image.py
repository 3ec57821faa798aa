"""The packaged images of the program, made out to the program id at which they are to run.

Owns: the places of an image that hold the program id and what follows from it.
Never: builds an image; `make program` does. Next: loader.py for the way onto the chain.

The code compares its own id with a constant, and signs its events with an address and a bump that
were derived from it when it was compiled. So a program at another id needs these three changed.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from typing import Final

from solders.pubkey import Pubkey

from troth_coordinator import artifacts
from troth_coordinator.chain.addresses import EVENT_AUTHORITY_SEED
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.chain.layouts import program_layout

IMAGES: Final = {"v0": artifacts.PROGRAM_V0, "v3": artifacts.PROGRAM_V3}
"""Packaged images by the version of sBPF: every cluster took v0, newer ones take only v3."""

_TIMES: Final = (1, 1, 2, 1)
"""How often each of `_constants` stands in a packaged image; the third counts the second again."""
_MAGIC = b"\x7fELF"
_FLAGS_OFFSET: Final = 48
_HEADER_BYTES: Final = 64


def packaged_image(version: str, program: Pubkey) -> bytes:
    """Return a packaged image as it runs at `program`; ArtifactError."""
    return made_out(artifacts.read_bytes(IMAGES[version]), program)


def made_out(image: bytes, program: Pubkey) -> bytes:
    """Return an image of the packaged program id as it runs at `program`.

    An image that was built for that id stays as it is. ArtifactError for an image that holds
    neither, or not in the known places: it cannot be changed without building it anew.
    """
    packaged = program_layout().program_id
    if program == packaged or (bytes(packaged) not in image and bytes(program) in image):
        return image
    old, new = _constants(packaged), _constants(program)
    found = tuple(image.count(one) for one in old)
    if found != _TIMES:
        raise ArtifactError(
            "program image",
            f"the id {packaged} and its event authority in {_TIMES} places",
            f"{found}",
            f"build an image whose declare_id! is {program} (programs/README.md)",
        )
    for before, after in zip(old, new, strict=True):
        image = image.replace(before, after)
    return image


def sbpf_version(image: bytes) -> str:
    """Return the version of an image as `v0`; ArtifactError for bytes that are no program."""
    if image[:4] != _MAGIC or len(image) < _HEADER_BYTES:
        raise ArtifactError(
            "program image",
            "an ELF file for sBPF",
            f"{len(image)} bytes that begin with {image[:4].hex() or 'nothing'}",
            "name the .so that `make program` or `anchor build` wrote",
        )
    return f"v{struct.unpack_from('<I', image, _FLAGS_OFFSET)[0]}"


def code_hash(code: bytes) -> str:
    """Return SHA-256 of code without the zeros behind it, as solana-verify counts."""
    return sha256(code.rstrip(b"\0")).hexdigest()


def is_ours(code: bytes) -> bool:
    """Tell whether code holds the name of any error of ours: another program has none."""
    names = artifacts.read_json(artifacts.LAYOUT).get("errors")
    known = names.values() if isinstance(names, dict) else ()
    return any(str(name).encode("ascii") in code for name in known)


def first_difference(one: bytes, two: bytes) -> int | None:
    """Return the first offset at which code differs, zeros behind it apart; None for none."""
    length = max(len(one), len(two))
    one, two = one.ljust(length, b"\0"), two.ljust(length, b"\0")
    if one == two:
        return None
    return next(at for at in range(length) if one[at] != two[at])


def _constants(program: Pubkey) -> tuple[bytes, bytes, bytes, bytes]:
    """Return what follows from an id, longest first where one holds another."""
    found, number = Pubkey.find_program_address([EVENT_AUTHORITY_SEED], program)
    authority, bump = bytes(found), bytes([number])
    return bytes(program), authority + bump, authority, EVENT_AUTHORITY_SEED + bump
