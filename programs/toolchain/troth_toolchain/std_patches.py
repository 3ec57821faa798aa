"""The edits that teach a copy of the standard library about target_os = "solana".

Owns: the table `EDITS` and how it is applied. Never: touches the installed sources.
Next: `sysroot.py` compiles the patched copy.
"""

from dataclasses import dataclass
from pathlib import Path

from troth_toolchain.errors import StdPatchError

_SOLANA = 'target_os = "solana"'


@dataclass(frozen=True)
class Edit:
    """Replace `anchor`, which must occur exactly `num_places` times, in a file of `library/`."""

    file: str
    why: str
    anchor: str
    replacement: str
    num_places: int = 1


def _join(*lines: str) -> str:
    return "\n".join(lines)


EDITS: tuple[Edit, ...] = (
    Edit(
        "std/src/sys/alloc/mod.rs",
        "the System allocator has no arm for an unknown OS",
        _join('    target_os = "zkvm" => {', "        mod zkvm;", "    }"),
        _join(
            '    target_os = "zkvm" => {',
            "        mod zkvm;",
            "    }",
            f"    {_SOLANA} => {{",
            "        mod solana;",
            "    }",
        ),
    ),
    Edit(
        "std/src/sys/alloc/mod.rs",
        "MIN_ALIGN has no entry for the architecture",
        '    target_arch = "riscv64",',
        _join('    target_arch = "riscv64",', '    target_arch = "bpf",'),
    ),
    Edit(
        "std/src/sys/io/error/mod.rs",
        "io::Error has no arm for an unknown OS",
        '        target_os = "zkvm",',
        _join('        target_os = "zkvm",', f"        {_SOLANA},"),
    ),
    Edit(
        "std/src/sys/thread_local/mod.rs",
        "one thread: thread-locals are plain statics without destructors",
        'target_os = "zkvm",',
        _join('target_os = "zkvm",', f"{_SOLANA},"),
        num_places=2,
    ),
    Edit(
        "std/src/sys/random/mod.rs",
        "there is no randomness on chain",
        _join('        target_os = "vexos",', "    ) => {"),
        _join('        target_os = "vexos",', f"        {_SOLANA},", "    ) => {"),
    ),
    Edit(
        "std/src/sys/random/mod.rs",
        "the fixed keys of the unsupported arm replace the generic ones",
        _join('    target_os = "vexos",', ")))]"),
        _join('    target_os = "vexos",', f"    {_SOLANA},", ")))]"),
    ),
    Edit(
        "std/src/hash/random.rs",
        "RandomState keeps keys in a writable static, which the loader refuses",
        "        thread_local!(static KEYS",
        _join(
            f"        #[cfg({_SOLANA})]",
            "        return RandomState { k0: 0, k1: 1 };",
            f"        #[cfg(not({_SOLANA}))]",
            "        thread_local!(static KEYS",
        ),
    ),
    Edit(
        "std/src/hash/random.rs",
        "the code after the early return must not exist either",
        "        KEYS.with(|keys|",
        _join(f"        #[cfg(not({_SOLANA}))]", "        KEYS.with(|keys|"),
    ),
    Edit(
        "std/src/alloc.rs",
        "the out-of-memory hook holds a writable static and prints to a stderr that is not there",
        "    // This is the default path taken on OOM, and the only path",
        _join(
            f"    #[cfg({_SOLANA})]",
            '    core::panic!("out of memory");',
            "    // This is the default path taken on OOM, and the only path",
        ),
    ),
    Edit(
        "std/src/panicking.rs",
        "a panic goes to custom_panic, which solana-program-entrypoint defines",
        _join(
            "    let loc = info.location().unwrap(); "
            "// The current implementation always returns Some",
            "    let msg = info.message();",
        ),
        _join(
            f"    #[cfg({_SOLANA})]",
            "    {",
            '        unsafe extern "Rust" {',
            "            fn custom_panic(info: &core::panic::PanicInfo<'_>);",
            "        }",
            "        unsafe { custom_panic(info) };",
            "        crate::sys::abort_internal();",
            "    }",
            "    let loc = info.location().unwrap();",
            "    let msg = info.message();",
        ),
    ),
    Edit(
        "std/src/panicking.rs",
        "a #[used] static would keep the whole panic machinery alive",
        _join("#[used(compiler)]", "pub static EMPTY_PANIC"),
        _join(f"#[cfg(not({_SOLANA}))]", "#[used(compiler)]", "pub static EMPTY_PANIC"),
    ),
    Edit(
        "core/src/slice/sort/stable/mod.rs",
        "4 KiB of stack scratch does not fit into a 4 KiB frame",
        "AlignedStorage::<T, 4096>",
        "AlignedStorage::<T, 1024>",
        num_places=2,
    ),
)

NEW_FILES: dict[str, str] = {"std/src/sys/alloc/solana.rs": "alloc_solana.rs"}
FILES_DIRECTORY = Path(__file__).parent / "std_files"


def apply(library: Path, edits: tuple[Edit, ...] = EDITS) -> None:
    """Patch the copy in `library`; raises `StdPatchError` naming the first edit that misses."""
    for edit in edits:
        _apply_edit(library / edit.file, edit)
    for name, source in NEW_FILES.items():
        (library / name).write_text((FILES_DIRECTORY / source).read_text())


def _apply_edit(path: Path, edit: Edit) -> None:
    if not path.is_file():
        raise StdPatchError(f"expected the std source {edit.file}, found none ({edit.why})")
    text = path.read_text()
    found = text.count(edit.anchor)
    if found != edit.num_places:
        raise StdPatchError(
            f"{edit.file}: expected {edit.num_places} x {edit.anchor!r}, found {found}. "
            f"Needed because {edit.why}. The std sources changed: review this edit in EDITS"
        )
    path.write_text(text.replace(edit.anchor, edit.replacement))
