"""Patches of the standard library fail loudly and say which edit."""

import shutil

import pytest
from troth_toolchain import std_patches
from troth_toolchain.errors import StdPatchError
from troth_toolchain.std_patches import EDITS, Edit

EDIT = Edit("std/src/a.rs", "the reason", "anchor", "anchor, more")


def library(tmp_path, text):
    path = tmp_path / "std/src/a.rs"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    (tmp_path / "std/src/sys/alloc").mkdir(parents=True)
    return path


def test_an_edit_is_applied(tmp_path):
    path = library(tmp_path, "one anchor here")
    std_patches.apply(tmp_path, (EDIT,))
    assert path.read_text() == "one anchor, more here"
    assert "GlobalAlloc for System" in (tmp_path / "std/src/sys/alloc/solana.rs").read_text()


@pytest.mark.parametrize("text", ["nothing", "anchor anchor"])
def test_a_missing_or_repeated_anchor_is_refused_and_the_file_untouched(tmp_path, text):
    path = library(tmp_path, text)
    with pytest.raises(StdPatchError, match=r"std/src/a.rs: expected 1 x 'anchor'.*the reason"):
        std_patches.apply(tmp_path, (EDIT,))
    assert path.read_text() == text


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(StdPatchError, match=r"expected the std source std/src/a.rs, found none"):
        std_patches.apply(tmp_path, (EDIT,))


def test_the_table_fits_the_installed_sources_and_only_once(tmp_path, packaged_compilers):
    for edit in EDITS:
        target = tmp_path / edit.file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(packaged_compilers.std_library / edit.file, target)
    std_patches.apply(tmp_path)
    with pytest.raises(StdPatchError):  # e.g. a cache that was patched before
        std_patches.apply(tmp_path)
