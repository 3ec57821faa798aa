"""Whether a data set is that of a run, and one that the run's model can take.

Owns: the three values that config and manifest share. Never: opens a shard.
Next: `manifest.py`; `shards.py` for what a shard may hold.

The hash on chain proves which data the creator named, and no more: whoever puts up a stake looks
here before that.
"""

from pathlib import Path
from typing import NamedTuple

from troth_client.data.errors import ManifestError
from troth_client.data.manifest import FILE_NAME, Manifest, load_manifest
from troth_coordinator.rules.config import RunConfig


class Misfit(NamedTuple):
    """A key of the config, what a data set has to have for it, and what this one has."""

    key: str
    wanted: str
    found: str


def misfit(config: RunConfig, manifest: Manifest) -> Misfit | None:
    """Return the first value in which a data set does not fit a config; None where all do."""
    bound, found = config.data.manifest_hash, manifest.hash.hex()
    if bound not in ("", found):
        return Misfit("data.manifest_hash", bound, found)
    wanted_tokens, tokens = config.data.sequence_tokens, manifest.sequence_tokens
    if wanted_tokens != tokens:
        return Misfit("data.sequence_tokens", str(wanted_tokens), str(tokens))
    most, vocab_size = config.model.vocab_size, manifest.vocab_size
    if vocab_size > most:
        return Misfit("model.vocab_size", f"{most} tokens or fewer", str(vocab_size))
    return None


def check_fit(config: RunConfig, manifest: Manifest, where: Path | str) -> None:
    """Raise ManifestError unless the model of a run can take the data that the run names."""
    found = misfit(config, manifest)
    if found is not None:
        raise ManifestError(
            f"{found.key} of the run's config to fit its data set: {found.wanted}",
            f"{found.found} in {where}",
            "The creator of the run bound it to data that its model cannot take:"
            " nobody can train on it.",
        )


def load_fitting(folder: Path, config: RunConfig) -> Manifest:
    """Return the manifest of a run's data folder. Raises ManifestError as `load_manifest` does.

    Also raises it where the model cannot take the data, whatever hash is on chain.
    """
    manifest = load_manifest(folder, config.manifest_digest())
    check_fit(config, manifest, folder / FILE_NAME)
    return manifest
