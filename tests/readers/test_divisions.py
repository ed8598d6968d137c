"""How nodes are divided: switches that are no tree, trees apart, holes in levels."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.formats.machines.combine import combine
from placer.formats.machines.findings import Findings, Level, NodeFacts
from placer.formats.machines.registry import read
from placer.report.machine_text import draw
from placer.topology.allocation import allocate
from tests.readers import cases
from tests.readers.cases import machine_of, tier_names

APART = """\
SwitchName=a Switches=leaf[1-2]
SwitchName=b Switches=leaf[3-4]
SwitchName=leaf1 Nodes=n[1-2]
SwitchName=leaf2 Nodes=n[3-4]
SwitchName=leaf3 Nodes=n[5-6]
SwitchName=leaf4 Nodes=n[7-8]
"""


def fabric(switches):
    """A topology.conf of switches by name: the names below each, or its nodes."""
    return "".join(
        f"SwitchName={name} {'Nodes' if below[0][0] == 'n' else 'Switches'}="
        f"{','.join(below)}\n"
        for name, below in switches.items()
    )


def divisions(findings):
    """The sets of nodes that each level makes, without the names of domains."""
    names = list(findings.nodes)
    return [
        {
            frozenset(name for name in names if findings.nodes[name].domains[k] == own)
            for own in {findings.nodes[name].domains[k] for name in names} - {""}
        }
        for k in range(len(findings.levels))
    ]


@pytest.mark.parametrize("seed", range(40))
def test_several_switches_for_one_change_no_domain(seed):
    """A tree, each upper switch written as several in any order, is the same tree."""
    rng = random.Random(seed)
    level = [f"l{i}" for i in range(rng.randint(1, 12))]
    one = {name: [f"n{name}-{i}" for i in range(rng.randint(1, 3))] for name in level}
    many = {name: [*nodes] for name, nodes in one.items()}
    copies = {name: [name] for name in level}
    for height in range(rng.randint(1, 3)):
        upper = {}
        for name in level:
            at = rng.randrange(max(1, len(level) // 2))
            upper.setdefault(f"h{height}-{at}", []).append(name)
        for name, below in upper.items():
            one[name] = below
            copies[name] = [f"{name}x{k}" for k in range(rng.randint(1, 4))]
            for number, copy in enumerate(copies[name]):
                # Every copy of a child hangs on one, and one of each child on all.
                many[copy] = [
                    part
                    for child in below
                    for k, part in enumerate(copies[child])
                    if k == 0 or k % len(copies[name]) == number
                ]
        level = list(upper)
    lines = list(many.items())
    rng.shuffle(lines)
    expected = divisions(read("slurm", fabric(one), "one.conf"))
    assert divisions(read("slurm", fabric(dict(lines)), "many.conf")) == expected


def test_trees_that_no_switch_joins(tmp_path):
    """Both are read, a note says so, and no job has hosts of both.

    Slurm, topology.conf manual page: jobs can only span nodes connected by the same
    switch fabric.
    """
    machine, notes = machine_of(tmp_path, APART, hardware=cases.H100)
    assert tier_names(machine) == ["node", "leaf", "spine", "cluster"]
    assert any(
        "trees that no switch joins: a (4 nodes), b (4 nodes)" in note for note in notes
    )
    (spine,) = [line for line in draw(machine).split("\n") if "spine " in line]
    assert spine.split()[-1] == "apart"
    with pytest.raises(InputError, match="in 2 parts that nothing joins") as caught:
        allocate(machine)
    assert "a: n[1-4]; b: n[5-8]" in caught.value.problems[0].hint
    with pytest.raises(InputError, match="nothing joins"):
        allocate(machine, "n[4-5]")
    assert allocate(machine, "n[5-8]").num_nodes == 4
    assert allocate(machine, exclude="n[1-4]").num_nodes == 4


@pytest.mark.parametrize("nodes", [1, 2])
def test_trees_of_one_leaf_each_stay_apart(tmp_path, nodes):
    """Where a spine repeats its leaf, or its only node, the trees are still two."""
    leaves = {f"l{k}": [f"n{k}-{i}" for i in range(nodes)] for k in range(2)}
    text = fabric({"a": ["l0"], "b": ["l1"], **leaves})
    machine, _ = machine_of(tmp_path, text, hardware=cases.H100)
    with pytest.raises(InputError, match="nothing joins"):
        allocate(machine)


@given(st.data())
def test_nested_divisions_come_back(data):
    """Random nested levels, given in any order with holes, come out nested.

    Oracle: whoever shared a known domain at a level still does, and nobody shares one
    with a node of another known domain.
    """
    depth = data.draw(st.integers(1, 3))
    count = data.draw(st.integers(1, 12))
    paths = [
        data.draw(st.tuples(*[st.integers(0, 1)] * depth), label="path")
        for _ in range(count)
    ]
    # Level k is the first depth - k steps of the path.
    full = [
        ["d" + "".join(map(str, path[: depth - k])) for k in range(depth)]
        for path in paths
    ]
    shown = [
        [d if data.draw(st.integers(0, 9)) else "" for d in domains] for domains in full
    ]
    order = data.draw(st.permutations(range(depth)))
    source = Findings(
        "f",
        tuple(Level(f"level{k}") for k in order),
        {
            f"n{i}": NodeFacts(tuple(domains[k] for k in order))
            for i, domains in enumerate(shown)
        },
    )
    try:
        tree = combine([source], multi_node_nvlink=False)
    except InputError:
        assert any("" in domains for domains in shown)
        return
    inner = np.arange(count)
    for layer in tree.levels:
        outer = layer.domain_of_node
        assert all(len(set(outer[inner == d])) == 1 for d in set(inner))
        assert len(set(outer)) < len(set(inner))
        k = int(layer.name[-1])
        for i in range(count):
            for j in range(i):
                if shown[i][k] and shown[j][k]:
                    same = shown[i][k] == shown[j][k]
                    assert (outer[i] == outer[j]) == same
        inner = outer
