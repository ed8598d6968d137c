"""Measured bandwidths: tiers from gaps, and what is measured on each."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.formats.machines.clusters import clusters_of
from placer.formats.machines.registry import read
from tests.readers.cases import refusal


def matrix(unit, names, speed):
    """The file where ``speed(a, b)`` is measured from row a to column b."""
    lines = [[unit, *names]]
    for i, name in enumerate(names):
        cells = ("" if i == j else f"{speed(i, j):g}" for j in range(len(names)))
        lines.append([name, *cells])
    return "".join(",".join(line) + "\n" for line in lines)


def test_slow_pair_is_reported():
    """One slow pair in a fast group is a bad link, not a tier."""
    speed = {(0, 1): 10, (1, 0): 10}
    text = matrix("GB/s per GPU", list("abcd"), lambda a, b: speed.get((a, b), 50))
    findings = read("bandwidth", text, "source")
    assert len(findings.levels) == 1
    text = matrix(
        "GB/s per GPU",
        list("abcdef"),
        lambda a, b: speed.get((a, b), 50 if a // 4 == b // 4 else 20),
    )
    findings = read("bandwidth", text, "source")
    assert len(findings.levels) == 2
    assert any("bad link?: 1: a to b" in note for note in findings.notes)


def test_chain_is_no_tier():
    """Hosts joined only by their neighbours are refused: most pairs are slow."""
    fast = {(i, i + 1) for i in range(8)}
    names = [f"n{i}" for i in range(11)]
    pairs = fast | {(b, a) for a, b in fast}
    text = matrix("GB/s", names, lambda a, b: 50 if (a, b) in pairs else 10)
    assert "a chain, no tier" in refusal("bandwidth", text)


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(2, 4), st.integers(2, 4), st.randoms())
def test_trees_come_back(racks, hosts, pods, chance):
    """Bandwidths of a tree, with noise, give back its levels in any order of hosts."""
    leaves = [(p, r) for p in range(pods) for r in range(racks) for _ in range(hosts)]
    chance.shuffle(leaves)
    count = len(leaves)
    speeds = np.full((count, count), np.nan)
    for a in range(count):
        for b in range(a):
            shared = (leaves[a] == leaves[b]) + (leaves[a][0] == leaves[b][0])
            speeds[a, b] = speeds[b, a] = (10, 40, 90)[shared] * chance.uniform(1, 1.2)
    found = clusters_of(speeds)
    expected = [[leaf[0] for leaf in leaves]]
    if racks > 1:
        expected.insert(0, list(leaves))
    assert len(found.groups) == len(expected)
    for groups, names in zip(found.groups, expected, strict=True):
        pairs = set(zip(groups, names, strict=True))
        assert len(pairs) == len(set(groups)) == len(set(names))
    assert (found.slow, found.chained) == ([], -1)


def gpus_of_hosts(count, speed):
    """A matrix of hosts of four GPUs; ``speed(host, a, b)`` inside, 25 between."""
    names = [f"h{i // 4}:{i % 4}" for i in range(4 * count)]

    def cell(i, j):
        return speed(i // 4, i % 4, j % 4) if i // 4 == j // 4 else 25

    return matrix("GB/s per GPU", names, cell)


def test_groups_of_gpus_inside_hosts():
    """Hosts of two pairs of fast GPUs have no single bandwidth, and are refused.

    One host with a slow GPU among others is noted, and the medians stand.
    """
    text = gpus_of_hosts(3, lambda _, a, b: 200 if a // 2 == b // 2 else 30)
    message = refusal("bandwidth", text)
    assert message == (
        'the GPUs of "h0" are 2 groups by bandwidth, of 2, 2 GPUs; hosts like it: 3'
    )
    text = gpus_of_hosts(3, lambda h, a, b: 40 if h == 1 and 3 in (a, b) else 200)
    findings = read("bandwidth", text, "source")
    assert findings.node_bandwidth == 200e9
    assert "hosts with groups of slower GPUs, a bad link?: 1: h1" in findings.notes
