"""The tree of commands as typer builds it, reduced to the parts that we need.

Owns: the shape that we rely on, in every typer release that pyproject.toml allows (older ones
bring click, newer ones hold a copy of it). Never: changes the tree.
Next: `settings.py` looks up options in it; scripts/gen/cli_reference.py turns it into a page.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol, cast

import typer


class Param(Protocol):
    """An option or an argument."""

    name: str | None
    opts: list[str]
    nargs: int
    required: bool
    metavar: str | None
    default: object

    @property
    def param_type_name(self) -> str:
        """`option` or `argument`."""


class Node(Protocol):
    """A command or a group of commands."""

    params: list[Param]
    help: str | None


def root_of(context: typer.Context) -> Node:
    """Return the whole program's node."""
    return cast(Node, context.find_root().command)


def node_of(context: typer.Context) -> Node:
    """Return the node of the command that a context runs."""
    return cast(Node, context.command)


def children(node: Node) -> Mapping[str, Node]:
    """Return the commands of a group by name; none for a command."""
    return cast("Mapping[str, Node]", getattr(node, "commands", {}))


def leaves(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    """Yield every command below a node with its words, joined by spaces."""
    below = children(node)
    if not below:
        yield path, node
    for name, child in below.items():
        yield from leaves(child, f"{path} {name}")


def path_of(context: typer.Context) -> list[str]:
    """Return the words of a context's command without the program's: ["run", "create"]."""
    names: list[str] = []
    current: typer.Context | None = context
    while current is not None and current.parent is not None:
        names.insert(0, str(current.info_name))
        current = cast("typer.Context | None", current.parent)
    return names
