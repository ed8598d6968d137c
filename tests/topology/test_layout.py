"""Layout and synthetic strings: names, domains and refusals."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.hostlist import name_problem
from placer.topology.layout import Level, lay_out, parse_levels
from placer.topology.read import read_topology
from placer.topology.synthetic import ASSUMED, read_synthetic
from tests.problems import problems_of
from tests.texts import table


@pytest.mark.parametrize(*table("topology/layout.yaml", "starts_of_names_differ"))
def test_starts_of_names_differ(text, first_node):
    """Tiers that begin alike get longer starts; the outermost tier does not count."""
    _, names = lay_out(parse_levels(text))
    assert names[0][0] == first_node


COUNTS = st.lists(st.integers(1, 12), min_size=1, max_size=4)


@given(COUNTS)
def test_layout_agrees_with_nested_loops(counts):
    """Domains are those of nested loops; names are distinct, valid and sorted."""
    tiers = ["alpha", "bravo", "charlie", "delta"][: len(counts)]
    levels = [Level("whole", 1), *map(Level, tiers, counts)]
    domains, names = lay_out(levels)
    nodes = list(product(*(range(count) for count in counts)))
    for depth in range(len(counts) + 1):
        index = {}
        for path in nodes:
            index.setdefault(path[:depth], len(index))
        row = [index[path[:depth]] for path in nodes]
        assert domains[len(counts) - depth].tolist() == row
        assert len(names[len(counts) - depth]) == len(index)
    assert list(names[0]) == sorted(set(names[0]))
    assert not any(map(name_problem, names[0]))


def test_synthetic_machine_gets_a_cluster_tier():
    """Tiers are those of the string and a cluster; figures are the assumed ones."""
    machine = read_topology("block:16  rack:8 node:18 gpu:4")
    assert [t.name for t in machine.tiers] == ["node", "rack", "block", "cluster"]
    assert machine.name == "block:16 rack:8 node:18 gpu:4"
    assert (machine.num_nodes, machine.num_gpus) == (16 * 8 * 18, 16 * 8 * 18 * 4)
    assert machine.sources == (ASSUMED,)
    assert machine.scale_up_tier == 0
    node, *outer = machine.tiers
    assert (node.bandwidth, node.latency, node.distance) == (450e9, 1e-6, 1.0)
    assert {(t.bandwidth, t.latency, t.distance) for t in outer} == {(50e9, 5e-6, 9.0)}


@pytest.mark.parametrize(*table("topology/layout.yaml", "synthetic_mistakes"))
def test_synthetic_mistakes(text, message):
    """A malformed string is refused with the reason and an example."""
    (problem,) = problems_of(read_synthetic, text)
    assert message in problem.message
    assert "block:16 rack:8 node:18 gpu:4" in problem.hint
