"""Merkle trees (protocol section 1).

Owns: roots, paths and their verification; an odd node is promoted, the leaf count is bound in. The
hash of short leaves: payloads, openings, sequence ids.
Never: copies a leaf: any contiguous buffer is hashed where it lies.
Next: `bulk.py` for the leaves of tensors and residuals, `state.py` for their roots.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from troth_attestation.errors import EmptyTreeError, PathIndexError
from troth_coordinator.rules.hashing import H, tag_prefix, u64
from troth_coordinator.rules.ids import Digest

Leaf = bytes | bytearray | memoryview
"""A leaf: bytes or a contiguous view of them."""

_LEAF = hashlib.sha256(tag_prefix("troth:leaf"))
_NODE_PREFIX = tag_prefix("troth:node")


@dataclass(frozen=True, slots=True)
class Path:
    """The place of a leaf in a tree, and the digests from it to the top, bottom first."""

    index: int
    count: int
    siblings: tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """All levels of a tree, leaves first: keep it to serve several paths."""

    levels: tuple[tuple[Digest, ...], ...]

    @property
    def count(self) -> int:
        """Number of leaves."""
        return len(self.levels[0])

    @property
    def root(self) -> Digest:
        """H("troth:merkle", count u64, top)."""
        return H("troth:merkle", u64(self.count), self.levels[-1][0])

    def path(self, index: int) -> Path:
        """Return the path of one leaf; PathIndexError outside the tree."""
        if not 0 <= index < self.count:
            raise PathIndexError(
                "leaf index", f"0..{self.count - 1}", index, "ask for a leaf of this tree"
            )
        siblings, at = [], index
        for level in self.levels[:-1]:
            if at ^ 1 < len(level):
                siblings.append(level[at ^ 1])
            at >>= 1
        return Path(index, self.count, tuple(siblings))


def cut(data: Leaf, leaf_bytes: int) -> Iterator[memoryview]:
    """Return views of consecutive leaves of this size; the last one may be shorter."""
    view = memoryview(data)
    return (view[at : at + leaf_bytes] for at in range(0, len(view), leaf_bytes))


def leaf_hash(leaf: Leaf) -> Digest:
    """Return H("troth:leaf", bytes)."""
    state = _LEAF.copy()
    state.update(leaf)
    return Digest(state.digest())


def node_hash(left: bytes, right: bytes) -> Digest:
    """Return H("troth:node", left[32], right[32])."""
    return Digest(hashlib.sha256(_NODE_PREFIX + left + right).digest())


def leaf_hashes(leaves: Iterable[Leaf]) -> list[Digest]:
    """Return the leaf hashes in order."""
    return [leaf_hash(leaf) for leaf in leaves]


def tree_of(hashes: Sequence[Digest]) -> Tree:
    """Build the tree over leaf hashes; EmptyTreeError without any."""
    if not hashes:
        raise EmptyTreeError("Merkle tree", "at least one leaf", 0, "an empty set has no root")
    levels = [tuple(hashes)]
    while len(levels[-1]) > 1:
        levels.append(tuple(_next_level(levels[-1])))
    return Tree(tuple(levels))


def tree(leaves: Iterable[Leaf]) -> Tree:
    """Build the tree over raw leaves; EmptyTreeError without any."""
    return tree_of(leaf_hashes(leaves))


def root(leaves: Iterable[Leaf]) -> Digest:
    """Return the Merkle root over raw leaves; EmptyTreeError without any."""
    return root_of(leaf_hashes(leaves))


def root_of(hashes: Sequence[Digest]) -> Digest:
    """Return the Merkle root over leaf hashes; EmptyTreeError without any."""
    return tree_of(hashes).root


def top_of(hashes: Sequence[Digest]) -> Digest:
    """Return the node above these neighbouring nodes; EmptyTreeError without any.

    Over 2^k aligned leaves, fewer at the end, it is a node of level k of the whole tree.
    """
    return tree_of(hashes).levels[-1][0]


def root_above(nodes: Sequence[Digest], count: int) -> Digest:
    """Return the Merkle root of `count` leaves from all nodes of one level of their tree."""
    return H("troth:merkle", u64(count), top_of(nodes))


def path(leaves: Iterable[Leaf], index: int) -> Path:
    """Return the path of one of the leaves; build a `Tree` if several are needed."""
    return tree(leaves).path(index)


class Verifier:
    """Verifies paths under one root; nodes that an earlier path has proven are not hashed again."""

    __slots__ = ("_count", "_proven", "_root")

    def __init__(self, root: bytes, count: int) -> None:
        self._root, self._count = root, count
        self._proven: dict[tuple[int, int], tuple[bytes, tuple[bytes, ...], int]] = {}

    def holds(self, leaf: bytes, index: int, siblings: tuple[bytes, ...]) -> bool:
        """Return whether the hash `leaf` is that of leaf `index`; see `verify`."""
        if not 0 <= index < self._count:
            return False
        node, at, width, used = leaf, index, self._count, 0
        passed = {}
        while width > 1:
            if self._is_proven((width, at), node, siblings, used):
                break
            passed[width, at] = node, siblings, used
            if at ^ 1 < width:
                if used == len(siblings):
                    return False
                sibling = siblings[used]
                used += 1
                node = node_hash(sibling, node) if at & 1 else node_hash(node, sibling)
            at >>= 1
            width = (width + 1) // 2
        else:
            is_whole = used == len(siblings)
            if not is_whole or H("troth:merkle", u64(self._count), node) != self._root:
                return False
        self._proven |= passed
        return True

    def _is_proven(
        self, place: tuple[int, int], node: bytes, siblings: tuple[bytes, ...], used: int
    ) -> bool:
        """Whether an earlier path led through this node, and on from there as this one does."""
        known = self._proven.get(place)
        return known is not None and (node, siblings[used:]) == (known[0], known[1][known[2] :])


def verify(expected_root: bytes, leaf: Digest, way: Path) -> bool:
    """Return whether the hash `leaf` is that of leaf `way.index` of `way.count` under this root.

    The caller hashes the leaf, by `leaf_hash` or `bulk.leaf_hash`, as the tree was made. Use a
    `Verifier` for several leaves of one tree.
    """
    return Verifier(expected_root, way.count).holds(leaf, way.index, way.siblings)


def _next_level(level: tuple[Digest, ...]) -> Iterable[Digest]:
    for at in range(0, len(level) - 1, 2):
        yield node_hash(level[at], level[at + 1])
    if len(level) % 2:
        yield level[-1]
