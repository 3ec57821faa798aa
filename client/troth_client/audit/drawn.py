"""The tiles that the seed of a round asks a trainer to open (protocol section 7).

Owns: the only way from a frozen seed and a signed header to `Sampled`. No tile is opened before
there is a seed, and only drawn tiles are opened.
Never: decides whether the payload is sampled. Next: `state/openings_store.py`.
"""

from troth_attestation.header import Header
from troth_attestation.openings import Sampled
from troth_client.state.errors import SeedNotFrozenError
from troth_coordinator.rules.ids import ZERO_DIGEST, Digest
from troth_coordinator.rules.view import RoundView, SeedStatus


def frozen_seed(round_: RoundView) -> Digest:
    """Return the seed of a round; SeedNotFrozenError while it is pending and when it is lost."""
    if round_.seed_status is not SeedStatus.FROZEN:
        raise SeedNotFrozenError(
            f"the seed of round {round_.round} to be frozen",
            round_.seed_status.name.lower(),
            "Keep the residuals until it is.",
        )
    return round_.seed


def sampled_payload(seed: Digest, header: Header, num_tiles: int, openings_tiles: int) -> Sampled:
    """Return the audited payload of a header under a frozen seed.

    `openings_tiles` is the config's `judge.openings_tiles`. `seed` comes from `frozen_seed`, or
    from the Audit account, which copies it. The account holds zeros until then; zeros raise
    SeedNotFrozenError.
    """
    if seed == ZERO_DIGEST:
        raise SeedNotFrozenError(
            f"the seed of round {header.round}", "none yet", "Wait until it is frozen on chain."
        )
    return Sampled.of(header, seed, num_tiles, openings_tiles)
