"""Finds the packaged compilers and checks their versions.

Owns: which compilers are accepted. Never: installs or downloads one.
Next: `target.py` and `sysroot.py` use what is found here.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from troth_toolchain.errors import CommandError, CompilerError
from troth_toolchain.process import run

PACKAGES = "rustc-web cargo-web rust-web-src llvm-22 clang-22"
RUSTC = Path("/usr/bin/rustc")
CARGO = Path("/usr/bin/cargo")
EXPECTED_RUST = "1.96"
# Bitcode is readable only by the LLVM line that wrote it: rustc's own and the tools' must agree.
LLVM_MAJOR = 22
_STD_LIBRARY = "lib/rustlib/src/rust/library"


@dataclass(frozen=True)
class Compilers:
    """Full version strings of what is installed, and rustc's sysroot."""

    rustc: str
    cargo: str
    rustc_llvm: str
    llvm: str
    clang: str
    sysroot: Path

    @property
    def std_library(self) -> Path:
        """Where the sources of the standard library lie."""
        return (self.sysroot / _STD_LIBRARY).resolve()

    @property
    def versions(self) -> dict[str, str]:
        """The strings that decide the produced bytes, as written to `build-info.json`."""
        return {
            "rustc": self.rustc,
            "cargo": self.cargo,
            "rustc_llvm": self.rustc_llvm,
            "llvm": self.llvm,
            "clang": self.clang,
        }


def tool(name: str) -> str:
    """Return the full path of an LLVM command of the accepted line, e.g. `tool("opt")`."""
    return f"/usr/bin/{name}-{LLVM_MAJOR}"


def find() -> Compilers:
    """Return the installed compilers; raises `CompilerError` when missing or of another version."""
    needed = [RUSTC, CARGO, *(Path(tool(name)) for name in _LLVM_TOOLS)]
    missing = [str(path) for path in needed if not path.exists()]
    if missing:
        raise CompilerError(f"expected {', '.join(missing)}; not found. {_hint()}")
    try:
        verbose = run([RUSTC, "-vV"])
        found = Compilers(
            rustc=verbose.splitlines()[0],
            cargo=run([CARGO, "-V"]).strip(),
            rustc_llvm=_after("LLVM version: ", verbose),
            llvm=_after("LLVM version ", run([tool("llc"), "--version"])),
            clang=_after("clang version ", run([tool("clang"), "--version"])),
            sysroot=_sysroot(),
        )
    except CommandError as error:
        raise CompilerError(f"cannot ask the compilers for their versions: {error}") from error
    check(found)
    return found


def check(found: Compilers) -> None:
    """Raise `CompilerError` unless `found` is the accepted line of compilers."""
    if not found.rustc.startswith(f"rustc {EXPECTED_RUST}."):
        raise CompilerError(f"expected rustc {EXPECTED_RUST}, found {found.rustc!r}. {_hint()}")
    if not found.cargo.startswith(f"cargo {EXPECTED_RUST}."):
        raise CompilerError(f"expected cargo {EXPECTED_RUST}, found {found.cargo!r}. {_hint()}")
    lines = {"rustc's LLVM": found.rustc_llvm, "llvm": found.llvm, "clang": found.clang}
    for what, version in lines.items():
        if version.split(".")[0] != str(LLVM_MAJOR):
            raise CompilerError(f"expected {what} {LLVM_MAJOR}.x, found {version}. {_hint()}")


_LLVM_TOOLS = ("llvm-ar", "llvm-link", "llvm-dis", "opt", "llc", "clang")


def _sysroot() -> Path:
    sysroot = Path(run([RUSTC, "--print", "sysroot"]).strip())
    if not (sysroot / _STD_LIBRARY / "std/src/lib.rs").exists():
        raise CompilerError(
            f"expected the std sources in {sysroot / _STD_LIBRARY}; not found. {_hint()}"
        )
    return sysroot


def _after(label: str, text: str) -> str:
    found = re.search(re.escape(label) + r"([0-9][\w.]*)", text)
    if found is None:
        raise CompilerError(f"expected {label!r} in the answer of a compiler, found {text[:200]!r}")
    return found.group(1)


def _hint() -> str:
    return f"Install Debian's packages: apt-get install {PACKAGES}"
