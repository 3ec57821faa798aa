"""The program built for another id is the shipped image with that id written into it."""

import shutil
from pathlib import Path

import pytest
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from troth_toolchain import crate, image

from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.program_image import made_out, packaged_image

REPOSITORY = Path(__file__).parents[2]
SOURCES = ("programs", "Cargo.toml", "Cargo.lock", "Anchor.toml")
PACKAGED = program_layout().program_id

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.nightly(reason="a whole build of the program, for minutes"),
]


def bump(program):
    return Pubkey.find_program_address([b"__event_authority"], program)[1]


@pytest.fixture
def other():
    """An id whose event authority has another bump, so that every constant differs."""
    keys = (Keypair.from_seed(number.to_bytes(32, "big")).pubkey() for number in range(200))
    return next(key for key in keys if bump(key) not in (bump(PACKAGED), 255))


def test_writing_an_id_into_an_image_gives_what_a_build_for_it_gives(
    packaged_compilers, cache_directory, tmp_path, other
):
    for name in SOURCES:
        source = REPOSITORY / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    library = tmp_path / "programs/coordinator/src/lib.rs"
    text = library.read_text()
    assert text.count(str(PACKAGED)) == 1
    library.write_text(text.replace(str(PACKAGED), str(other)))
    described = crate.describe(tmp_path / "programs/coordinator")
    bitcode = crate.compile_bitcode(described, packaged_compilers, cache_directory, is_locked=True)
    linked = image.link(bitcode)
    for version, number in (("v0", 0), ("v3", 3)):
        built = image.write(linked, number)
        assert built == packaged_image(version, other)
        assert made_out(built, other) == built
