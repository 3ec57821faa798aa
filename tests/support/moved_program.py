"""The shipped program as somebody would build it for another address.

Owns: the image and its address. Never: a chain. Next: network.py.
"""

from solders.keypair import Keypair
from solders.pubkey import Pubkey

from troth_coordinator import artifacts
from troth_coordinator.chain.addresses import event_authority_address
from troth_coordinator.chain.layouts import program_layout

OURS = program_layout().program_id


def _bump(program: Pubkey) -> int:
    return Pubkey.find_program_address([b"__event_authority"], program)[1]


def _elsewhere() -> Pubkey:
    """An address whose event authority has the bump that is compiled into the image."""
    keys = (Keypair.from_seed(bytes([number]) * 32).pubkey() for number in range(1, 256))
    return next(key for key in keys if _bump(key) == _bump(OURS))


def _image_at(program: Pubkey) -> bytes:
    """The image with the constants changed that hold its own addresses."""
    image = artifacts.program_image()
    for ours, theirs in (
        (OURS, program),
        (event_authority_address(OURS), event_authority_address(program)),
    ):
        assert bytes(ours) in image
        image = image.replace(bytes(ours), bytes(theirs))
    return image


ELSEWHERE = _elsewhere()
IMAGE_ELSEWHERE = _image_at(ELSEWHERE)
