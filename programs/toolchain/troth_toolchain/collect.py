"""The linker that rustc runs: it gathers the bitcode of all crates into one module.

Owns: turning a linker command line into `<output>` = one bitcode file. Cargo then knows the
output is fresh, and the real link (`image.py`) can be repeated without compiling again.
Never: imports the package; it is started by rustc as a plain script.
Next: `image.py`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

_WITH_VALUE = frozenset({"-o", "-L", "--cpu", "--cpu-features", "--export", "--export-symbols"})
_ARCHIVE = b"!<arch>\n"
_BITCODE = b"BC\xc0\xde"
_ELF = b"\x7fELF"


def parse(arguments: list[str]) -> tuple[list[Path], Path]:
    """Return inputs and output of a linker command line of rustc's BPF flavour."""
    inputs: list[Path] = []
    output: Path | None = None
    words = iter(arguments)
    for word in words:
        if word in _WITH_VALUE:
            value = next(words, "")
            output = Path(value) if word == "-o" else output
        elif not word.startswith("-"):
            inputs.append(Path(word))
    if output is None:
        raise SystemExit(f"collect: expected -o OUTPUT, found {arguments}")
    return inputs, output


def modules(inputs: list[Path], scratch: Path, archiver: str) -> list[Path]:
    """Bitcode files of all inputs, archives unpacked; refuses machine code of another kind."""
    found: list[Path] = []
    for number, path in enumerate(inputs):
        magic = path.read_bytes()[:8]
        if magic == _ARCHIVE:
            directory = scratch / str(number)
            directory.mkdir()
            subprocess.run([archiver, "x", f"--output={directory}", str(path)], check=True)
            members = [each for each in sorted(directory.iterdir()) if each.suffix == ".o"]
        else:
            members = [path]
        found += [member for member in members if _is_bitcode(member, path)]
    return found


def _is_bitcode(member: Path, origin: Path) -> bool:
    with member.open("rb") as handle:
        magic = handle.read(4)
    if magic == _BITCODE:
        return True
    # rustc adds an empty ELF object that only names symbols.
    if magic == _ELF and member.name == "symbols.o":
        return False
    raise SystemExit(f"collect: {member.name} of {origin} is not LLVM bitcode: a C library?")


def main(arguments: list[str]) -> None:
    """Entry point: the first argument is the LLVM suffix, the rest is rustc's command line."""
    suffix, *command_line = arguments
    inputs, output = parse(command_line)
    with tempfile.TemporaryDirectory() as scratch:
        found = modules(inputs, Path(scratch), f"llvm-ar-{suffix}")
        part = output.with_name(output.name + ".part")
        subprocess.run([f"llvm-link-{suffix}", *map(str, found), "-o", str(part)], check=True)
        part.replace(output)


if __name__ == "__main__":
    main(sys.argv[1:])
