"""Weights that a command is given as a folder, because the run begins from them.

Owns: whether config and option agree, and doubts about the data beside such weights.
Never: judges a file; `read_start` does.
Next: `troth_client/checkpoint/start.py`; `create.py`, which puts such weights into a new run.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from troth_cli.errors import InputError
from troth_client.checkpoint.folder import Weights
from troth_client.checkpoint.start import read_start
from troth_client.data.manifest import MAX_TOKENIZER_BYTES, TOKENIZER_FILE, Manifest
from troth_client.runtime.files import read_file
from troth_coordinator.rules.config import RunConfig


def weights_to_calibrate(
    config: RunConfig, folder: Path | None, note: Callable[[str], None]
) -> Weights | None:
    """Return the weights of the folder; None for a config whose first weights are drawn.

    Raises InputError where only one of config and option names given weights, and the errors of
    `read_start`.
    """
    if config.has_given_start == (folder is None):
        raise _contradiction(folder)
    return None if folder is None else read_noted(config, folder, note)


def read_noted(config: RunConfig, folder: Path, note: Callable[[str], None]) -> Weights:
    """Return the weights of a folder and say what was done to them; errors of `read_start`."""
    start = read_start(folder, config.model)
    for line in start.notes:
        note(f"{folder}: {line}.")
    return start.weights


def tokenizer_warnings(start: Path, manifest: Manifest) -> Iterator[str]:
    """Yield a doubt that the data has the tokenizer of given weights."""
    file = start / TOKENIZER_FILE
    found = read_file(file, MAX_TOKENIZER_BYTES)
    if found is None:
        yield f"no {file} to compare with: is the data set's tokenizer that of these weights?"
    elif hashlib.sha256(found).hexdigest() != manifest.tokenizer.sha256:
        yield (
            f"the data set has another tokenizer than {file}: its tokens may stand for other text"
            " than these weights have learned"
        )


def _contradiction(folder: Path | None) -> InputError:
    if folder is None:
        return InputError(
            "the folder of the first weights, for start.weights = given",
            "none",
            "Name it: bounds that drawn weights gave would be those of another model.",
            "--start",
        )
    return InputError(
        "--start only for a config with start.weights = given",
        str(folder),
        "Leave the option out, or add --set start.weights=given if the run begins from them.",
        "--start",
    )
