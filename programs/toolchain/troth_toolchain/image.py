"""The link: one bitcode module in, one sBPF image out.

Owns: the order of passes and llc's options.
    opt (whole program) -> rewrite rules -> link helpers -> opt (inline them) -> llc -> ELF
Never: runs cargo. Next: `ir/rules.py`, `elf/program.py`.
"""

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from troth_toolchain.compilers import tool
from troth_toolchain.elf import image_v0, image_v3, program
from troth_toolchain.elf import object as elf_object
from troth_toolchain.elf.opcodes import Version
from troth_toolchain.errors import CommandError, LinkError
from troth_toolchain.ir import module
from troth_toolchain.ir.floats import SOFT_FLOAT
from troth_toolchain.process import build_environment, run

RUNTIME = Path(__file__).parent / "runtime"
STACK_FRAME_BYTES = 4096
OPT_LEVELS = {"2": "O2", "3": "O3", "s": "Os", "z": "Oz"}
DEFAULT_OPT_LEVEL = "z"
_ENTRY = "entrypoint"
_WRITERS = {0: image_v0.write, 3: image_v3.write}
_MAX_SHOWN = 40


@dataclass(frozen=True)
class Linked:
    """A program ready for any writer, and how often each rewrite rule fired."""

    program: program.Program
    num_fired: Counter[str]


def link(bitcode: bytes, opt_level: str = DEFAULT_OPT_LEVEL) -> Linked:
    """Turn a whole program's bitcode into sBPF code.

    Raises `RewriteError` or `LinkError` with the offending function where it is known.
    """
    with TemporaryDirectory(prefix="troth-link-") as name:
        scratch = Path(name)
        (scratch / "all.bc").write_bytes(bitcode)
        _optimise(scratch, OPT_LEVELS[opt_level])
        run([tool("llvm-dis"), scratch / "opt.bc", "-o", scratch / "opt.ll"])
        helpers = sorted(RUNTIME.glob("*.ll"))
        text = (scratch / "opt.ll").read_text()
        rewritten = module.rewrite(text, [path.read_text() for path in helpers])
        (scratch / "rewritten.ll").write_text(rewritten.text)
        _add_helpers(scratch, helpers)
        _generate_code(scratch)
        flat = program.flatten(elf_object.parse((scratch / "program.o").read_bytes()))
        return Linked(flat, rewritten.num_fired)


def write(linked: Linked, version: Version = 0) -> bytes:
    """Return the image for one sBPF version; both versions come from the same code."""
    return _WRITERS[version](linked.program)


def _optimise(scratch: Path, level: str) -> None:
    # mergefunc: generic code repeats itself, and again after inlining. lower-atomic: one thread.
    # instnamer: the rules need a name for each value.
    merge = "mergefunc,globaldce"
    passes = f"internalize,globaldce,{merge},lto<{level}>,{merge},lower-atomic,instnamer"
    kept = ",".join((_ENTRY, *SOFT_FLOAT))
    run(
        [
            *(tool("opt"), f"-internalize-public-api-list={kept}", f"-passes={passes}"),
            *("-mtriple=bpfel", "-mcpu=v2", scratch / "all.bc", "-o", scratch / "opt.bc"),
        ]
    )


def _add_helpers(scratch: Path, helpers: list[Path]) -> None:
    run(
        [
            *(tool("clang"), "-target", "bpfel", "-O2", "-emit-llvm", "-c"),
            *(RUNTIME / "rt.c", "-o", scratch / "rt.bc"),
        ]
    )
    inputs = [scratch / "rewritten.ll", scratch / "rt.bc", *helpers]
    run([tool("llvm-link"), *inputs, "-o", scratch / "linked.bc"])
    run(
        [
            *(tool("opt"), f"-internalize-public-api-list={_ENTRY}"),
            *("-passes=internalize,always-inline,globaldce", scratch / "linked.bc"),
            *("-o", scratch / "final.bc"),
        ]
    )


def _generate_code(scratch: Path) -> None:
    command = [
        *(tool("llc"), "-march=bpfel", "-mcpu=v2", "-filetype=obj"),
        f"-bpf-stack-size={STACK_FRAME_BYTES}",
        "-expand-div-rem-bits=64",
        # llc would end unreachable blocks with a call of __bpf_trap, which deployment refuses.
        "-bpf-disable-trap-unreachable",
        "-mattr=+allows-misaligned-mem-access",
        *(str(scratch / "final.bc"), "-o", str(scratch / "program.o")),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env=build_environment(), check=False
    )
    if done.returncode:
        raise LinkError(explain(done.stderr))


def explain(stderr: str) -> str:
    """Group llc's complaints by function and message, most frequent first."""
    counts: Counter[str] = Counter()
    for line in stderr.splitlines():
        if "error" in line or "warning: stack" in line:
            found = re.search(r"in function (\S+) .*?: (.*)$", line)
            counts[f"{_demangle(found[1])}: {found[2]}" if found else line.strip()] += 1
    if not counts:
        return f"llc failed: {stderr[-2000:]}"
    shown = [f"  {number} x {what}" for what, number in counts.most_common(_MAX_SHOWN)]
    hint = (
        f"  (frames are {STACK_FRAME_BYTES} bytes: box large values and mark handlers with big "
        "locals #[inline(never)])"
    )
    return "\n".join(["llc refused the program:", *shown, hint])


def _demangle(symbol: str) -> str:
    try:
        return run([tool("llvm-cxxfilt"), symbol]).strip()
    except CommandError:
        return symbol
