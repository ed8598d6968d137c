"""Directions of graphs that look like grids, tori or cubes."""

import networkx as nx
import numpy as np
import pytest

from placer.solve.construct.traffic.directions import directions
from tests.solve.construct.test_tiles import grid


def test_a_grid_has_two_directions_whoever_is_where():
    """Also with cells missing, and three where cells are cubes."""
    for shape, missing in (((5, 7), 0), ((5, 7), 3), ((3, 4, 5), 4)):
        flows = grid(*shape)
        count = int(np.prod(shape))
        kept = (flows.edges < count - missing).all(axis=1)
        found = directions(flows.edges[kept], count - missing)
        assert len(found.coordinate) == len(shape)


@pytest.mark.parametrize("ranks", [64, 50])
def test_a_cube_has_one_for_each_bit(ranks):
    rank = np.arange(ranks)
    pairs = [(r, r ^ 1 << b) for r in rank.tolist() for b in range(6)]
    edges = np.array([pair for pair in pairs if pair[0] < pair[1] < ranks])
    found = directions(edges, ranks)
    assert len(found.coordinate) == 6


def test_a_graph_that_is_no_product_has_one():
    graph = nx.random_regular_graph(3, 20, seed=1)
    found = directions(np.array(list(graph.edges)), 20)
    assert len(found.coordinate) == 1
