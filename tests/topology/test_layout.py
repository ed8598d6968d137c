"""Layout and synthetic strings: names, domains and refusals."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.base.errors import InputError
from placer.base.hostlist import name_problem
from placer.topology.layout import Level, lay_out, parse_levels
from placer.topology.read import read_topology
from placer.topology.synthetic import ASSUMED, is_synthetic, read_synthetic
from tests.texts import table


def test_names_of_a_small_machine():
    """Names spell the path from the outside in, padded to the width of each count."""
    domains, names = lay_out(parse_levels("cluster:1 block:2 rack:1 node:10"))
    assert names[3] == ("cluster",)
    assert names[2] == ("b1", "b2")
    assert names[1] == ("b1-r1", "b2-r1")
    assert names[0][:2] == ("b1-r1-n01", "b1-r1-n02")
    assert names[0][9:11] == ("b1-r1-n10", "b2-r1-n01")
    assert domains.shape == (4, 20)
    assert domains[0].tolist() == list(range(20))
    assert domains[1].tolist() == domains[2].tolist() == [0] * 10 + [1] * 10
    assert domains[3].tolist() == [0] * 20


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


@pytest.mark.parametrize(*table("topology/layout.yaml", "synthetic_tiers"))
def test_synthetic_tiers(text, tiers):
    """An outermost count of 1 is the cluster; any other machine gets one on top."""
    assert [tier.name for tier in read_synthetic(text).tiers] == tiers.split()


@pytest.mark.parametrize(*table("topology/layout.yaml", "synthetic_mistakes"))
def test_synthetic_mistakes(text, message):
    """A malformed string is refused with the reason and an example."""
    with pytest.raises(InputError) as caught:
        read_synthetic(text)
    (problem,) = caught.value.problems
    assert message in problem.message
    assert "block:16 rack:8 node:18 gpu:4" in problem.hint


@pytest.mark.parametrize(
    *table("topology/layout.yaml", "synthetic_strings_are_told_from_names")
)
def test_synthetic_strings_are_told_from_names(text, answer):
    """Only tier:count opens a synthetic string."""
    assert is_synthetic(text) is answer
