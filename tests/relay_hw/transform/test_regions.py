"""find_regions against its definition, checked by brute force."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.transform.regions import find_regions


@st.composite
def graphs(draw):
    size = draw(st.integers(1, 9))
    kinds = draw(st.lists(st.sampled_from("ab"), min_size=size, max_size=size))
    reads = [draw(st.lists(st.integers(0, unit - 1), max_size=3)) if unit else [] for unit in range(size)]
    return kinds, reads


def _policies(regions, reads):
    return {(regions[s], regions[u]) for u, sources in enumerate(reads) for s in sources if regions[s] != regions[u]}


def _is_acyclic(edges, nodes):
    nodes = set(nodes)
    while nodes:
        free = {n for n in nodes if not any(target == n and source in nodes for source, target in edges)}
        if not free:
            return False
        nodes -= free
    return True


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_regions_are_convex_maximal_and_in_order(graph):
    kinds, reads = graph
    regions = find_regions(kinds, reads)
    assert sorted(set(regions)) == list(range(max(regions) + 1))
    kind_of = {}
    for kind, region in zip(kinds, regions, strict=True):
        assert kind_of.setdefault(region, kind) == kind
    assert all(source < target for source, target in _policies(regions, reads)), "numbers follow execution"
    for left, right in combinations(kind_of, 2):
        if kind_of[left] == kind_of[right]:
            merged = [left if region == right else region for region in regions]
            assert not _is_acyclic(_policies(merged, reads), merged), (left, right)


def test_a_branch_that_leaves_and_returns_splits_a_region():
    # 0 a -> 1 b -> 2 a, and 0 -> 2 directly.
    assert find_regions("aba", [[], [0], [0, 1]]) == [0, 1, 2]


def test_parallel_branches_share_a_region():
    assert find_regions("abba", [[], [0], [0], [1, 2]]) == [0, 1, 1, 2]


def test_long_networks_take_no_longer_than_their_length():
    """50,000 units, and more regions than all paths between them could be followed for."""
    count = 50_000
    chain = [[], *([unit - 1] for unit in range(1, count))]
    star = [[], *([0] for _ in range(1, count))]
    assert set(find_regions("a" * count, chain)) == {0}
    assert set(find_regions("a" * count, [[] for _ in range(count)])) == {0}
    assert find_regions("ab" * (count // 2), star) == [0, 1] * (count // 2)
    assert find_regions("ab" * 300, chain[:600]) == list(range(600))
