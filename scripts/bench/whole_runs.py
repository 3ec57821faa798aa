"""Shared parts of benchmarks of whole runs and rehearsals: data, settings, and the journal.

Owns: the small model, data and settings bound to each other, the journal.
Never: plays a run. Next: `convictions.py`, `honest.py`, `verification.py`; for rehearsals,
`honest_pairs.py` and `tile_cheats.py`.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from json_lines import append_line, read_lines

from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.shards import TokenData
from troth_client.data.sources import Source, stdlib_source
from troth_client.data.tokens import ByteTokenizer
from troth_client.model.device import CPU, Device, in_precision
from troth_coordinator import artifacts
from troth_coordinator.config_files import load_config
from troth_coordinator.rules.settings import RunSettings

TEXT_BYTES = 2_000_000
ROUNDS_APART = 1_000
"""A rehearsal begins so many rounds of data behind that of the seed before."""


def prepared(folder: Path, source: Source, shape: PrepareOptions) -> TokenData:
    """Return a text as bytes, prepared in a folder."""
    return TokenData(folder, prepare(folder, source, ByteTokenizer(), shape))


@contextlib.contextmanager
def on_source_text(settings: RunSettings) -> Iterator[tuple[RunSettings, TokenData]]:
    """Yield settings bound to a piece of the standard library's text, and that text as tokens."""
    tokens = settings.config.data.sequence_tokens
    shape = PrepareOptions(sequence_tokens=tokens, limit_bytes=TEXT_BYTES)
    with (
        tempfile.TemporaryDirectory() as folder,
        prepared(Path(folder), stdlib_source(), shape) as data,
    ):
        yield _bound(settings, data), data


def model_of(width: int, layers: int, tokens: int) -> dict[str, int]:
    """Return the model section of a small model on bytes."""
    return {
        "vocab_size": 256,
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": tokens,
    }


def settings_on(data: TokenData, changes: Mapping[str, object]) -> RunSettings:
    """Return the settings of defaults < changes, bound to the data."""
    return _bound(load_config((), changes), data)


def _bound(settings: RunSettings, data: TokenData) -> RunSettings:
    config = settings.config.with_manifest(data.manifest.hash)
    return settings.model_copy(update={"config": config})


def kinds_of(second: Device) -> dict[str, Device]:
    """Return the two precisions of the processor, and those of a second device, by name.

    One and the next are one device.
    """
    kinds = {"fp32": CPU, "bf16": CPU.other_precision()}
    if second != CPU:
        both = (in_precision(second.torch, name) for name in ("fp32", "bf16"))
        kinds |= {f"{one.torch} {one.precision}": one for one in both}
    return kinds


class Journal:
    """Runs that were played, a line of JSON each: an interruption loses only the one under way.

    A run is known by its name, by the program and settings that it was played on, and by the
    second device, if there was one. The Python code is not in it: begin another file where that has
    changed.
    """

    def __init__(self, path: Path, device: Device = CPU) -> None:
        self._path = path
        self._device = "" if device == CPU else str(device.torch)
        path.parent.mkdir(parents=True, exist_ok=True)

    def read(self, settings: RunSettings) -> dict[str, dict[str, Any]]:
        """Return what was found on these settings, by the names of the runs."""
        world, lines = self._world(settings), read_lines(self._path)
        return {line["name"]: line["found"] for line in lines if line["world"] == world}

    def add(self, settings: RunSettings, name: str, found: Mapping[str, object]) -> None:
        """Append a run."""
        append_line(self._path, {"name": name, "world": self._world(settings), "found": found})

    def _world(self, settings: RunSettings) -> str:
        told = settings.model_dump_json() + self._device
        return sha256(artifacts.program_image() + told.encode()).hexdigest()[:16]
