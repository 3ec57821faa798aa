"""Packaged images at other program ids."""

import hashlib

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.keypair import Keypair
from solders.pubkey import Pubkey
from support.bare_machine import BareMachine

from troth_coordinator import artifacts
from troth_coordinator.chain.errors import ArtifactError
from troth_coordinator.chain.layouts import program_layout
from troth_coordinator.chain.program_image import (
    IMAGES,
    code_hash,
    first_difference,
    is_ours,
    made_out,
    packaged_image,
    sbpf_version,
)

PACKAGED = program_layout().program_id
UNKNOWN_INSTRUCTION, OTHER_ID = "Custom(101)", "Custom(4100)"
"""Anchor's answers to an instruction that it does not know, and to a call at a foreign id."""


def id_with_bump(bump):
    """The first key of a fixed list whose event authority has this bump."""
    for number in range(200):
        key = Keypair.from_seed(number.to_bytes(32, "big")).pubkey()
        if Pubkey.find_program_address([b"__event_authority"], key)[1] == bump:
            return key
    raise AssertionError(bump)


def answer(image, program):
    """The error of an instruction that no version of the program knows."""
    machine = BareMachine(image, program)
    payer = AccountMeta(machine.payer.pubkey(), True, False)
    return str(machine.run(Instruction(program, b"no such!", [payer])).err())


@pytest.mark.parametrize("version", IMAGES)
def test_packaged_images_say_their_version_and_keep_their_own_id(version):
    image = artifacts.read_bytes(IMAGES[version])
    assert sbpf_version(image) == version
    assert packaged_image(version, PACKAGED) == image
    assert is_ours(image)


@pytest.mark.parametrize("version", IMAGES)
@pytest.mark.parametrize("bump", [255, 254, 253])
def test_an_image_for_another_id_holds_nothing_of_the_packaged_one(version, bump):
    program = id_with_bump(bump)
    image = packaged_image(version, program)
    assert len(image) == len(packaged_image(version, PACKAGED))
    assert image.count(bytes(program)) == 1
    assert image.count(bytes(PACKAGED)) == 0
    assert image.count(b"__event_authority" + bytes([bump])) == 1
    assert made_out(image, program) == image
    assert made_out(image, PACKAGED) == image, "it is built for another id"


def test_a_program_runs_at_the_id_that_its_image_was_made_out_to():
    program = id_with_bump(253)
    assert OTHER_ID in answer(packaged_image("v0", PACKAGED), program)
    assert UNKNOWN_INSTRUCTION in answer(packaged_image("v0", program), program)


@pytest.mark.parametrize("image", [b"", b"\x7fELF", b"#!/bin/sh\n" + bytes(99)])
def test_a_file_that_is_no_program_is_named(image):
    with pytest.raises(ArtifactError, match="ELF file"):
        sbpf_version(image)


def test_an_image_with_the_id_in_unknown_places_is_refused_with_the_way_out():
    image = packaged_image("v0", PACKAGED) + bytes(PACKAGED)
    with pytest.raises(ArtifactError, match="declare_id! is"):
        made_out(image, id_with_bump(255))


def test_zeros_behind_the_code_do_not_count():
    assert first_difference(b"ab", b"ab\0\0") is None
    assert first_difference(b"ab\0\0", b"ab") is None
    assert first_difference(b"ab\0c", b"ab") == 3
    assert first_difference(b"ab", b"xb") == 0
    assert code_hash(b"ab\0\0") == hashlib.sha256(b"ab").hexdigest()
    assert not is_ours(bytes(10**6))
