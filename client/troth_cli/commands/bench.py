"""`troth bench`: how fast the method is on this machine, beside what others do.

Owns: options, and which sizes fit. Never: measures.
Next: `../bench/parts.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from troth_cli.errors import InputError
from troth_cli.options import MAX_THREADS, Common, command
from troth_cli.result_files import check_drawing, check_file
from troth_cli.view.output import Facts, Output
from troth_client.compression.limits import ALLOWED_K

if TYPE_CHECKING:
    import torch

    from troth_cli.bench.parts import Plan
    from troth_cli.bench.sizes import Size
    from troth_cli.bench.table import Measured

_DEFAULT_SIZES = "1M,7M,30M"


@dataclass(frozen=True, kw_only=True)
class BenchOptions(Common):
    """Options of `troth bench`."""

    sizes: Annotated[
        str,
        typer.Option(
            "--sizes", metavar="LIST", help="Of 1M, 7M, 30M, 124M, 350M and 1B, with commas."
        ),
    ] = _DEFAULT_SIZES
    device: Annotated[
        str,
        typer.Option(
            "--device", metavar="NAME", help="cpu or cuda; else both where there is a GPU."
        ),
    ] = ""
    k: Annotated[
        int,
        typer.Option(
            "--k",
            metavar="N",
            min=1,
            max=64,
            help=f"Coefficients of a tile: one of {', '.join(map(str, ALLOWED_K))}.",
        ),
    ] = 32
    peers: Annotated[
        int, typer.Option("--peers", metavar="N", min=1, max=64, help="Payloads of a round.")
    ] = 8
    threads: Annotated[
        int,
        typer.Option(
            "--threads", metavar="N", min=1, max=MAX_THREADS, help="Threads on the processor."
        ),
    ] = 1
    repeats: Annotated[
        int, typer.Option("--repeats", metavar="N", min=1, help="Counted repetitions.")
    ] = 5
    plot: Annotated[
        Optional[Path],  # noqa: UP045  typer reads it at run time
        typer.Option("--plot", metavar="FILE", help="Draw the steps as an SVG."),
    ] = None


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    command(app, "bench", BenchOptions)(bench)


def bench(options: BenchOptions, output: Output) -> None:
    """Time the parts of a round on this machine, beside the released DeMo, AdamW and all-reduce.

    Encode, apply, payloads, roots, judge and sketch, on random tensors of Llama shapes. All ways to
    do a part take turns in one process, but for the dense all-reduce. That one follows in two
    processes of its own, through loopback: no network is measured. They compute on the processor,
    which the table says where the other ways have a GPU. AdamW is torch's fused one, or torch's
    default where there is none. It shows medians and ratios.
    """
    sizes = _sizes_of(options.sizes)
    if options.plot is not None:
        check_drawing()
        check_file(options.plot)
    with output.loading():
        import torch

        from troth_cli.bench.clock import load
        from troth_cli.bench.table import grid, picture, values
        from troth_client.runtime.files import atomic_write

    torch.set_num_threads(options.threads)
    before = load()
    found = list(_measured(sizes, options, output))
    if not found:
        raise InputError(
            "a size that fits into memory",
            options.sizes,
            "Name a smaller one: --sizes 1M.",
            "--sizes",
        )
    facts = {
        "threads": options.threads,
        "k": options.k,
        "peers": options.peers,
        "repeats": options.repeats,
        "load": before,
    }
    notes = [(f"{one.size} {one.device}", one.kernels) for one in found]
    output.result(
        {**facts, "measured": values(found)}, grid(found), Facts.of(facts), Facts(notes, "kernels")
    )
    # After the table: a disk that is full by now costs the picture, and not the measurements.
    if options.plot is not None:
        atomic_write(options.plot, [picture(found).encode()])


def _measured(
    sizes: dict[str, "Size"], options: BenchOptions, output: Output
) -> Iterator["Measured"]:
    from troth_cli.bench.parts import Plan
    from troth_client.model.device import choose_device
    from troth_client.train.memory import give_back

    names = [options.device] if options.device else ["cpu", *_cuda()]
    for device in (choose_device(name).torch for name in names):
        plan = Plan(options.k, options.peers, options.repeats, device)
        for name, size in sizes.items():
            give_back()  # PyTorch keeps that of tensors that are gone
            room, needed = _free_bytes(device), size.num_bytes(options.peers)
            if needed > room:
                output.warn(
                    f"{name} is left out: it takes {needed / 1e9:.1f} GB with {options.peers}"
                    f" peers, and {room / 1e9:.1f} GB are free"
                )
                continue
            output.note(f"{name} on {device}: {size.num_parameters:,} parameters")
            yield _measure(name, size, plan)


def _measure(name: str, size: "Size", plan: "Plan") -> "Measured":
    """Measure one size; its tensors are gone when this returns."""
    from troth_cli.bench.parts import Bench
    from troth_cli.bench.table import Measured

    made = Bench(size, plan)
    about = (name, size.num_parameters, str(plan.device), made.payload_bytes)
    return Measured(*about, made.path.summary, list(made.parts()))


def _sizes_of(text: str) -> dict[str, "Size"]:
    from troth_cli.bench.sizes import SIZES

    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in SIZES]
    if unknown or not names:
        raise InputError(
            f"names of {', '.join(SIZES)}", repr(text), "Separate them by commas.", "--sizes"
        )
    return {name: SIZES[name] for name in names}


def _cuda() -> list[str]:
    import torch

    return ["cuda"] if torch.cuda.is_available() else []


def _free_bytes(device: "torch.device") -> int:
    import torch

    from troth_client.participant.measuring import free_bytes

    return int(torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else free_bytes()
