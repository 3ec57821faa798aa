"""Compile the GPU's kernels without a GPU: `python scripts/gpu/compiled.py [--arch 80 90 100 120]`.

Owns: a table of what Triton and its packaged assembler make of each kernel, per architecture.
Never: runs them, or says how fast they are. Fails if a product is fused with a sum outside of the
transform. Needs TRITON_INTERPRET unset or 0.
Next: `client/troth_client/compression/kernels/gpu_compiler.py`, `equality.py` beside it.
"""

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from troth_client.compression.kernels import gpu_apply, gpu_encode, gpu_hash
from troth_client.compression.kernels.gpu_compiler import HASH_OPTIONS, OPTIONS, as_odd

THREADS = 32 * int(OPTIONS["num_warps"])
TRANSFORM = 8 * 32**3 // THREADS
"""The fused products of one thread in eight transforms of 32x32."""
ARITHMETIC = re.compile(r"\b(fma|mul|add|sub)\.(?:[a-z]+\.)*(f32x2|f32)\b")


@dataclass(frozen=True)
class NoDevice:
    """A driver that only names the architecture: enough to compile, too little to run."""

    target: GPUTarget

    def get_current_target(self) -> GPUTarget:
        """Return what to compile for."""
        return self.target

    def get_current_device(self) -> int:
        """Return any number."""
        return 0

    def get_current_stream(self, _device: int) -> int:
        """Return any number."""
        return 0


def main() -> None:
    """Print the table; exit 1 where a kernel fuses what it must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", type=int, nargs="+", default=[80, 89, 90, 100, 120])
    parser.add_argument("--k", type=int, nargs="+", default=[8, 32])
    arguments = parser.parse_args()
    is_right = True
    print(f"{'kernel':<14} {'arch':>4} {'fma':>5} {'mul':>4} {'registers':>9} {'stack':>5} shared")
    for arch in arguments.arch:
        driver.set_active(NoDevice(GPUTarget("cuda", arch, 32)))
        for k in arguments.k:
            for is_zero in (False, True):
                name = f"{'first' if is_zero else 'encode'} k={k}"
                is_right &= show(name, arch, encode(k, is_zero), TRANSFORM)
        is_right &= show("apply", arch, apply(), 0)
        is_right &= show("hash chunks", arch, hashing(gpu_hash.hash_chunks, 64), 0)
        is_right &= show("hash pairs", arch, hashing(gpu_hash.hash_pairs, False), 0)
    if not is_right:
        raise SystemExit("a product is fused with a sum where each must round alone")


def encode(k: int, is_zero: bool) -> triton.compiler.CompiledKernel:
    """Compile the encoding of a matrix, on a momentum or, as in a first round, on none."""
    real, byte = torch.empty(1), torch.empty(1, dtype=torch.uint8)
    short, word = torch.empty(1, dtype=torch.int16), torch.empty(1, dtype=torch.int32)
    return _compiled(
        gpu_encode.encode_tiles,
        gpu_encode.Given(real, real, short, real),
        cut(),
        gpu_encode.Rule(0.999, 0.6, 5),
        gpu_encode.Found(real, short, byte, byte, word),
        k,
        is_zero,
    )


def apply() -> triton.compiler.CompiledKernel:
    """Compile a step of a matrix."""
    half = torch.empty(1, dtype=torch.int8)
    return _compiled(
        gpu_apply.apply_tiles,
        torch.empty(1),
        cut(),
        gpu_apply.Fields(torch.empty(1, dtype=torch.int16), as_odd(256)),
        gpu_apply.Halves(half, half),
        gpu_apply.Constants(0.99, 0.001),
    )


def hashing(kernel: triton.JITFunction, constant: int | bool) -> triton.compiler.CompiledKernel:
    """Compile the hashing of one level of leaves."""
    words = torch.empty(1, dtype=torch.int32)
    level = gpu_hash.Level(words, as_odd(7))
    return _compiled(kernel, level, words, words, constant, options=HASH_OPTIONS)


def cut() -> gpu_encode.Cut:
    """Return a matrix whose sizes are not divisible by anything."""
    return gpu_encode.Cut(as_odd(201), 131, 131, 1, as_odd(7))


def _compiled(
    kernel: triton.JITFunction, *arguments: object, options: Mapping[str, object] = OPTIONS
) -> triton.compiler.CompiledKernel:
    kernel.device_caches.clear()  # one device stands for several architectures
    return kernel.warmup(*arguments, grid=(1,), **options)


def show(name: str, arch: int, made: triton.compiler.CompiledKernel, fused: int) -> bool:
    """Print a row; return whether no more products are fused than those of the transform."""
    found = Counter[str]()
    for operation, width in ARITHMETIC.findall(made.asm["ptx"]):
        found[operation] += 2 if width == "f32x2" else 1
    registers, stack = _resources(made.asm["cubin"])
    print(
        f"{name:<14} {arch:>4} {found['fma']:>5} {found['mul']:>4} {registers:>9} {stack:>5}"
        f" {made.metadata.shared}"
    )
    return found["fma"] <= fused


def _resources(cubin: bytes) -> tuple[str, str]:
    """Return registers and bytes of stack of a thread, as the packaged tool reads them."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "--dump-resource-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    return (found[1], found[2]) if found else ("?", "?")


if __name__ == "__main__":
    main()
