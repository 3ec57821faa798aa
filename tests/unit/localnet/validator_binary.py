"""Where the tests get solana-test-validator from: packed in ../shared/tools, or on PATH."""

import hashlib
import lzma
import os
import shutil
from pathlib import Path

import pytest

from troth_localnet.validator import BINARY_NAME

REPOSITORY = Path(__file__).parents[3]
PACKED = REPOSITORY.parent / "shared/tools/solana-test-validator-4.1.1-debian12-x86_64.xz"
UNPACKED_SHA256 = "ccfd3c4f32370c4dbc81f8210fab761f246b8e35d696caed3620e9c3ee1458d5"


def validator_binary(request: pytest.FixtureRequest) -> Path:
    """The path of the binary; skips the test if there is none."""
    if PACKED.is_file():
        return _unpacked(Path(request.config.cache.mkdir("validator")) / BINARY_NAME)
    found = shutil.which(BINARY_NAME)
    if found is None:
        pytest.skip(f"neither {PACKED} nor {BINARY_NAME} on PATH")
    return Path(found)


def _unpacked(path: Path) -> Path:
    """Unpack once and keep; a damaged copy is made again."""
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == UNPACKED_SHA256:
        return path
    data = lzma.decompress(PACKED.read_bytes())
    assert hashlib.sha256(data).hexdigest() == UNPACKED_SHA256
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(data)
    fresh.chmod(0o755)
    return fresh.replace(path)
