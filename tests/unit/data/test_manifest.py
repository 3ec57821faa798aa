"""The manifest: canonical, hashed, strict about everything that a stranger could send."""

import hashlib
import json

import pytest

from troth_client.data.errors import ManifestError
from troth_client.data.manifest import FILE_NAME, Manifest, load_manifest

SHA = hashlib.sha256(b"").hexdigest()


def fields(**changes):
    return {
        "version": 3,
        "vocab_size": 256,
        "token_bytes": 2,
        "sequence_tokens": 9,
        "num_sequences": 5,
        "num_validation_sequences": 1,
        "tokenizer": {"kind": "bytes", "sha256": SHA, "end_token": 0},
        "train": [
            {"file": "train-00000.bin", "pieces": [SHA], "tokens": 30},
            {"file": "train-00001.bin", "pieces": [SHA], "tokens": 20},
        ],
        "validation": [{"file": "validation-00000.bin", "pieces": [SHA], "tokens": 10}],
    } | changes


def write(folder, content):
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / FILE_NAME).write_text(text)
    return folder


def test_the_hash_covers_the_canonical_json_only(tmp_path):
    pretty = write(tmp_path, json.dumps(fields(), indent=4))
    manifest = load_manifest(pretty)
    tag = b"troth:manifest"
    body = json.dumps(fields(), sort_keys=True, separators=(",", ":")).encode()
    assert manifest.canonical == body
    prefix = len(tag).to_bytes(4, "little") + tag + len(body).to_bytes(4, "little")
    assert manifest.hash == hashlib.sha256(prefix + body).digest()
    assert load_manifest(write(tmp_path, manifest.canonical.decode())).hash == manifest.hash


def test_every_field_changes_the_hash():
    base = Manifest.model_validate_json(json.dumps(fields()))
    changes = [
        {"vocab_size": 255},
        {"token_bytes": 4},
        {"tokenizer": {"kind": "bytes", "sha256": SHA, "end_token": None}},
        {"validation": [{"file": "v.bin", "pieces": [SHA], "tokens": 10}]},
        {"train": list(reversed(fields()["train"]))},
        {"sequence_tokens": 4, "num_sequences": 10, "num_validation_sequences": 2},
    ]
    hashes = {Manifest.model_validate_json(json.dumps(fields(**c))).hash for c in changes}
    assert len(hashes | {base.hash}) == len(changes) + 1


def test_the_hash_on_chain_is_insisted_on(tmp_path):
    manifest = load_manifest(write(tmp_path, fields()))
    assert load_manifest(tmp_path, manifest.hash) == manifest
    with pytest.raises(ManifestError, match=f"{'00' * 32}.*{manifest.hash.hex()}"):
        load_manifest(tmp_path, bytes(32))


BAD_SHARD = {"file": "../secret.bin", "pieces": [SHA], "tokens": 50}
OK_SHARD = BAD_SHARD | {"file": "ok.bin"}


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("", "JSON"),
        ("[]", "the file"),
        (fields(extra=1), "extra"),
        (fields(version=2), r"of version 3, found version: .*Prepare the data anew"),
        (fields(vocab_size="256"), "vocab_size"),
        (fields(vocab_size=0), "vocab_size"),
        (fields(vocab_size=65537), "2 bytes cannot hold 65537"),
        (fields(token_bytes=3), "token_bytes"),
        (fields(num_sequences=6), "5 sequences, not 6"),
        (fields(num_validation_sequences=2), "1 sequences, not 2"),
        (fields(sequence_tokens=10), "no whole sequences"),
        (fields(train=[]), "train"),
        (fields(train=[BAD_SHARD]), "file"),
        (fields(train=[BAD_SHARD | {"file": "/etc/passwd.bin"}]), "file"),
        (fields(train=[BAD_SHARD | {"file": ".hidden.bin"}]), "file"),
        (fields(train=[BAD_SHARD | {"file": "manifest.json"}]), "ends with .bin"),
        (fields(train=[BAD_SHARD | {"file": "lock"}]), "ends with .bin"),
        (fields(train=[OK_SHARD | {"pieces": [SHA.upper()]}]), "pieces"),
        (fields(train=[OK_SHARD | {"pieces": []}]), "pieces"),
        (fields(train=[OK_SHARD | {"pieces": [SHA] * 2}]), "2 pieces, not 1"),
        (
            fields(train=[OK_SHARD | {"tokens": 10 * 2**40}], num_sequences=2**40),
            "too many for one",
        ),
        (fields(train=[fields()["train"][1]] * 2, num_sequences=4), "named twice"),
        (fields(train=[OK_SHARD | {"file": "VALIDATION-00000.bin"}]), "named twice"),
        (fields(tokenizer={"kind": "other", "sha256": SHA, "end_token": 0}), "tokenizer.kind"),
    ],
)
def test_malformed_manifests_name_the_field(content, names, tmp_path):
    with pytest.raises(ManifestError, match=names) as caught:
        load_manifest(write(tmp_path, content))
    assert str(tmp_path / FILE_NAME) in str(caught.value)


def test_a_missing_manifest_says_what_to_do(tmp_path):
    with pytest.raises(ManifestError, match=r"no such file.*troth data prepare"):
        load_manifest(tmp_path)
