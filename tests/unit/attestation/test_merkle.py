"""Merkle trees: a path proves one leaf at one place in one tree, and nothing else."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth_attestation import merkle
from troth_attestation.errors import EmptyTreeError, PathIndexError


def holds(root, leaf, path):
    return merkle.verify(root, merkle.leaf_hash(leaf), path)


LEAVES = st.lists(st.binary(max_size=40), min_size=1, max_size=70)


@st.composite
def proofs(draw):
    leaves = draw(LEAVES)
    index = draw(st.integers(0, len(leaves) - 1))
    return leaves, index, merkle.path(leaves, index)


@given(proofs())
def test_every_leaf_has_a_path(proof):
    leaves, index, path = proof
    assert holds(merkle.root(leaves), leaves[index], path)
    assert path.index == index
    assert path.count == len(leaves)


@given(proofs(), st.binary(max_size=40))
def test_another_leaf_is_refused(proof, other):
    leaves, index, path = proof
    accepted = holds(merkle.root(leaves), other, path)
    assert accepted == (other == leaves[index])


@given(proofs(), st.integers(-70, 140))
def test_another_index_is_refused(proof, index):
    leaves, here, path = proof
    moved = replace(path, index=index)
    if index != here and not (0 <= index < len(leaves) and leaves[index] == leaves[here]):
        assert not holds(merkle.root(leaves), leaves[here], moved)


@given(proofs(), st.integers(-1, 200))
def test_another_count_is_refused(proof, count):
    leaves, index, path = proof
    if count != len(leaves):
        claimed = replace(path, count=count)
        assert not holds(merkle.root(leaves), leaves[index], claimed)


@given(proofs(), st.data())
def test_a_changed_path_is_refused(proof, data):
    leaves, index, path = proof
    root, kept = merkle.root(leaves), path.siblings
    changed = [(*kept, bytes(32))]
    if kept:
        at = data.draw(st.integers(0, len(kept) - 1))
        bit = 1 << data.draw(st.integers(0, 255))
        flipped = (int.from_bytes(kept[at], "little") ^ bit).to_bytes(32, "little")
        changed += [kept[:-1], kept[1:], (*kept[:at], flipped, *kept[at + 1 :])]
    for siblings in changed:
        assert not holds(root, leaves[index], replace(path, siblings=siblings))


@given(LEAVES, st.data())
def test_earlier_paths_change_no_answer(leaves, data):
    tree = merkle.tree(leaves)
    kept = merkle.Verifier(tree.root, tree.count)
    for _ in range(8):
        index = data.draw(st.integers(-1, len(leaves)))
        path = tree.path(min(max(index, 0), len(leaves) - 1))
        leaf, siblings = tree.levels[0][path.index], list(path.siblings)
        if data.draw(st.booleans()):
            at = data.draw(st.integers(-1, len(siblings) - 1))
            change = data.draw(st.sampled_from(["other", "shorter", "longer"]))
            if change == "longer":
                siblings.append(bytes(32))
            elif at < 0:
                leaf = bytes(32)
            elif change == "other":
                siblings[at] = bytes(32)
            else:
                del siblings[at]
        way = merkle.Path(index, tree.count, tuple(siblings))
        assert kept.holds(leaf, index, way.siblings) == merkle.verify(tree.root, leaf, way)


@pytest.mark.parametrize("place", [0, 1])
def test_a_path_that_leaves_a_proven_one_is_refused(place):
    tree = merkle.tree([b"a", b"b", b"c", b"d"])
    kept = merkle.Verifier(tree.root, tree.count)
    assert kept.holds(tree.levels[0][0], 0, tree.path(0).siblings)
    wrong = list(tree.path(1).siblings)
    wrong[place] = bytes(32)
    assert not kept.holds(tree.levels[0][1], 1, tuple(wrong))
    assert kept.holds(tree.levels[0][1], 1, tree.path(1).siblings)


def test_each_node_is_hashed_once(monkeypatch):
    tree = merkle.tree([bytes([n]) for n in range(37)])
    kept, hashed = merkle.Verifier(tree.root, tree.count), []
    plain = merkle.node_hash
    monkeypatch.setattr(merkle, "node_hash", lambda *pair: hashed.append(pair) or plain(*pair))
    for index, leaf in enumerate(tree.levels[0]):
        assert kept.holds(leaf, index, tree.path(index).siblings)
    # Both children of a node lead to it, so it is hashed for the first path through each of them.
    assert len(hashed) < 2 * 37
    assert len(set(hashed)) == 36


@given(LEAVES, LEAVES)
def test_other_leaves_have_another_root(first, second):
    assert (merkle.root(first) == merkle.root(second)) == (first == second)


def test_an_inner_node_is_no_leaf():
    leaves = [b"a", b"b", b"c", b"d"]
    tree = merkle.tree(leaves)
    joined = b"".join(tree.levels[0][:2])
    assert merkle.root([joined, b"".join(tree.levels[0][2:])]) != tree.root


def test_a_tree_needs_a_leaf():
    for make in (lambda: merkle.root([]), lambda: merkle.tree([]), lambda: merkle.tree_of([])):
        with pytest.raises(EmptyTreeError, match="at least one leaf"):
            make()


@pytest.mark.parametrize("index", [-1, 3])
def test_a_tree_has_no_path_outside(index):
    with pytest.raises(PathIndexError, match=r"leaf index: expected 0\.\.2"):
        merkle.tree([b"a", b"b", b"c"]).path(index)
