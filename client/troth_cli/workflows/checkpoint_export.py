"""`troth checkpoint export`: verified weights as a folder that `transformers` loads.

Owns: the order: fetch if needed, verify, and only then write; and what becomes of the fetch.
Never: writes weights whose root is not the chain's.
Next: `troth_client/checkpoint/exporting.py` for the files.
"""

from pathlib import Path
from typing import Final

from troth_cli.errors import InputError, OutputFileError
from troth_cli.workflows.checkpoint_verify import Verified
from troth_client.checkpoint.exporting import CARD_FILE, KeptTokenizer, Origin, export_state
from troth_client.checkpoint.folder import remove
from troth_client.data.manifest import MAX_TOKENIZER_BYTES, TOKENIZER_FILE, load_manifest
from troth_client.data.tokens import kept_tokenizer
from troth_client.model.export import CONFIG_FILE, TOKENIZER_CONFIG_FILE, WEIGHTS_FILE
from troth_client.runtime.files import TEMPORARY_SUFFIX, FolderLock, read_file
from troth_coordinator.rules.config import RunConfig

LOCK_FILE: Final = "lock"
_FILES: Final = (CARD_FILE, CONFIG_FILE, TOKENIZER_CONFIG_FILE, TOKENIZER_FILE, WEIGHTS_FILE)


def fetch_folder(out: Path, round_: int) -> Path:
    """Return where an export of a run keeps the checkpoint that it fetches, until it is done."""
    return out.with_name(f"{out.name}.checkpoint-{round_}")


def check_source(path: Path) -> None:
    """Raise InputError for a file: only folders name the run, the round and the config."""
    if path.is_file():
        raise InputError(
            "a run's address, the folder of a checkpoint or of an export",
            "a file",
            "Name its folder, or fetch the checkpoint: troth checkpoint fetch.",
            str(path),
        )


def check_paths(out: Path, tokenizer: Path | None) -> None:
    """Check the paths before anything slow begins.

    Raises OutputFileError unless the folder is new, empty, or an export that is replaced, and
    InputError for a tokenizer that is missing.
    """
    if tokenizer is not None and not tokenizer.is_file():
        raise InputError("a tokenizer.json", "no such file", "Correct --tokenizer.", str(tokenizer))
    if not out.exists():
        return
    if not out.is_dir():
        raise _in_the_way(out, "a file")
    known = {LOCK_FILE, *_FILES, *(name + TEMPORARY_SUFFIX for name in _FILES)}
    strange = sorted(one.name for one in out.iterdir() if one.name not in known)
    if strange:
        raise _in_the_way(out, f"{strange[0]} in it")


def find_tokenizer(
    file: Path | None, data: Path | None, config: RunConfig, beside: Path | None = None
) -> KeptTokenizer | None:
    """Return the tokenizer.json to put beside the weights; None if none is known.

    Which token ends a document, only the data set tells. Where neither file nor data set is named,
    it is the one in the folder `beside`, an export, as it is. Raises InputError if the file of the
    data set is not the one that its manifest names, or if that of the export is no plain file.
    Raises ManifestError for a data set of another run.
    """
    if file is not None:
        return KeptTokenizer(file.read_bytes(), None)
    if data is None:
        return None if beside is None else _kept_beside(beside / TOKENIZER_FILE)
    manifest = load_manifest(data, config.manifest_digest())
    found = kept_tokenizer(data, manifest)
    if found is None:
        raise InputError(
            f"{TOKENIZER_FILE} with the hash that the data set names",
            "a missing or another file",
            "Name the tokenizer with --tokenizer FILE instead of --data.",
            str(data),
        )
    return KeptTokenizer(found, manifest.tokenizer.end_token)


def _kept_beside(path: Path) -> KeptTokenizer | None:
    if not path.exists() and not path.is_symlink():
        return None
    # The folder may come from a stranger, whose link would lead to a file of the user.
    found = None if path.is_symlink() else read_file(path, MAX_TOKENIZER_BYTES)
    if found is None:
        raise InputError(
            f"a tokenizer of at most {MAX_TOKENIZER_BYTES} bytes",
            "a link, no file, or a longer one",
            "Name the tokenizer with --tokenizer FILE, or the data set with --data DIR.",
            str(path),
        )
    return KeptTokenizer(found, None)


def write_export(verified: Verified, out: Path, tokenizer: KeptTokenizer | None) -> Origin:
    """Write the export of weights that the chain names, and return their origin.

    Raises FolderInUseError, DiskFullError.
    """
    origin = verified.origin
    with FolderLock(out, LOCK_FILE):
        export_state(out, origin, verified.weights, tokenizer)
        if tokenizer is None:
            for name in (TOKENIZER_FILE, TOKENIZER_CONFIG_FILE):  # of an export that is replaced
                (out / name).unlink(missing_ok=True)
        (out / LOCK_FILE).unlink(missing_ok=True)
    return origin


def drop_fetch(folder: Path) -> None:
    """Remove a checkpoint that was fetched for an export which is done."""
    remove(folder)


def _in_the_way(out: Path, found: str) -> OutputFileError:
    return OutputFileError(
        "a new or empty folder, or an older export",
        found,
        "Name another folder with --out; nothing was changed.",
        str(out),
    )
