"""Token data for a measurement: the user's folder, or bytes of the Python standard library.

Owns: the temporary data set and the check of the length of sequences.
Never: trains. Next: `troth_client.data.prepare`.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from troth_cli.errors import InputError
from troth_client.data.manifest import load_manifest
from troth_client.data.prepare import PrepareOptions, prepare
from troth_client.data.sources import stdlib_source
from troth_client.data.tokens import ByteTokenizer

if TYPE_CHECKING:
    from troth_coordinator.rules.config import RunConfig

_STDLIB_BYTES = 2_000_000


@contextlib.contextmanager
def data_folder(given: Path | None, config: "RunConfig") -> Iterator[Path]:
    """Yield a folder with data for this config; one that we made is gone after the block.

    Raises InputError where the user's sequences have another length, and the errors of `data`.
    """
    wanted = config.data.sequence_tokens
    with tempfile.TemporaryDirectory(prefix="troth-data-") as temporary:
        folder = given or Path(temporary, "stdlib")
        if given is None:
            shape = PrepareOptions(sequence_tokens=wanted, limit_bytes=_STDLIB_BYTES)
            prepare(folder, stdlib_source(), ByteTokenizer(), shape)
        found = load_manifest(folder).sequence_tokens
        if found != wanted:
            raise InputError(
                f"sequences of {wanted} tokens, as the run's settings say",
                f"{found}",
                "Prepare the data with the same --config.",
                "--data",
            )
        yield folder
