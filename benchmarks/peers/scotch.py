"""Scotch: static mapping of the graph onto a tree by ``gmap``, from a system package.

On a machine without slack the target is the tree of leaves (``tleaf``). Otherwise, or
beside it, the target is every usable slot of the full tree (``sub``), and the graph is
padded with isolated vertices to as many as there are slots: exact capacities.

Pellegrini and Roman 1996, "Scotch: a software package for static mapping by dual
recursive bipartitioning of process and architecture graphs".
"""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchmarks.peers.answer import placed_by
from benchmarks.peers.problem import Graph

if TYPE_CHECKING:
    from benchmarks.peers.problem import MappingProblem

IntArray = npt.NDArray[np.int64]

NAME = "Scotch"
# tleaf: load balanced over all leaves; sub: exact, slack anywhere; packed: exact, slack
# on the last leaves.
VARIANTS = ("tleaf", "sub", "packed")
PROGRAMS = ("scotch_gmap-int64", "scotch_gmap", "gmap")
OPTIONS = {"tleaf": ("-b0.01", "-cq"), "sub": ("-b0.0", "-cqb")}


def version() -> str | None:
    """Version that the program prints, None without it."""
    program = _program()
    if program is None:
        return None
    shown = subprocess.run([program, "-V"], capture_output=True, text=True, check=False)
    found = re.search(r"version (\S+?),?\s", shown.stdout + shown.stderr)
    return f"Scotch {found[1]}" if found else "Scotch"


def _program() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def _map(problem: MappingProblem, variant: str, seed: int) -> IntArray | None:
    """Leaf of each vertex on the target ``variant``.

    The program has no seed of its own: seeds above 0 shuffle the vertices.
    """
    if variant == "tleaf":
        return _on_tree(problem, seed) if _is_regular(problem) else None
    leaves = np.arange(len(problem.capacity))
    if variant == "packed":
        leaves = problem.first_leaves()
        if len(leaves) == len(problem.capacity):
            return None  # the same as sub
    return leaves[_on_slots(problem.only(leaves), seed)]


place = placed_by(_map)


def _is_regular(problem: MappingProblem) -> bool:
    tree = tree_of(problem)
    return len(np.unique(problem.capacity)) == 1 and bool(
        np.prod(tree.children) == len(problem.capacity)
    )


def _on_tree(problem: MappingProblem, seed: int) -> IntArray:
    """Leaf of each vertex; leaves are equal, and all are used."""
    tree = tree_of(problem)
    levels = tree.levels(problem)
    if not levels:
        return np.zeros(problem.graph.vertices, dtype=np.int64)
    terminal = run(problem.graph, target_text(levels), OPTIONS["tleaf"], seed)
    leaf_of_position = np.argsort(tree.position)
    return leaf_of_position[terminal]


def _on_slots(problem: MappingProblem, seed: int) -> IntArray:
    """Leaf of each vertex; every vertex has a slot of its own."""
    tree = tree_of(problem)
    width = int(problem.capacity.max())
    levels = tree.levels(problem)
    if width > 1:
        levels.append((width, 1))
    if not levels:
        return np.zeros(problem.graph.vertices, dtype=np.int64)
    leaf_of_slot = np.repeat(np.arange(len(problem.capacity)), problem.capacity)
    first = np.concatenate(([0], np.cumsum(problem.capacity)))[leaf_of_slot]
    terminal = tree.position[leaf_of_slot] * width + np.arange(len(first)) - first
    text = f"sub {len(terminal)} {' '.join(map(str, terminal))}\n{target_text(levels)}"
    padded = Graph(len(terminal), problem.graph.edges, problem.graph.weights)
    # Terminals of a part of an architecture are numbered in the order they are listed.
    slot = run(padded, text, OPTIONS["sub"], seed)[: problem.graph.vertices]
    return leaf_of_slot[slot]


class _Tree:
    """The smallest regular tree that holds the leaves.

    Attributes
    ----------
    children : list of int
        Outermost first.
    position : ndarray, shape (K,)
        Of each leaf among the leaves of the regular tree.
    """

    def __init__(self, domain_of_leaf: IntArray) -> None:
        self.children: list[int] = []
        self.position: IntArray = np.zeros(domain_of_leaf.shape[1], dtype=np.int64)
        for outer, inner in pairwise(domain_of_leaf[::-1]):
            index = _index_in_parent(outer, inner)
            most = int(index.max()) + 1
            self.children.append(most)
            self.position = self.position * most + index

    def levels(self, problem: MappingProblem) -> list[tuple[int, int]]:
        """Children and cost of every level with more than one child, outermost first.

        Costs of the levels that a path crosses add up, so each is an increment.
        """
        costs = np.diff(problem.distance)[::-1].tolist()
        levels: list[tuple[int, int]] = []
        for children, cost in zip(self.children, costs, strict=True):
            if children > 1:
                levels.append((children, cost))
            elif levels:  # Scotch refuses an only child: its parent takes the cost
                outer, outer_cost = levels[-1]
                levels[-1] = (outer, outer_cost + cost)
        return levels


def tree_of(problem: MappingProblem) -> _Tree:
    """The regular tree of a problem's leaves."""
    return _Tree(problem.domain_of_leaf)


def _index_in_parent(outer: IntArray, inner: IntArray) -> IntArray:
    """Which child of its outer domain each leaf's inner domain is, from 0."""
    pair, index = np.unique(np.stack([outer, inner]), axis=1, return_inverse=True)
    first = np.searchsorted(pair[0], pair[0])
    child: IntArray = (np.arange(pair.shape[1]) - first)[index.ravel()]
    return child


def target_text(levels: list[tuple[int, int]]) -> str:
    """A ``tleaf`` architecture."""
    numbers = " ".join(f"{children} {cost}" for children, cost in levels)
    return f"tleaf {len(levels)} {numbers}\n"


def run(graph: Graph, target: str, options: tuple[str, ...], seed: int) -> IntArray:
    """Terminal of each vertex.

    Raises
    ------
    subprocess.CalledProcessError
        If the program fails.
    """
    number = np.arange(graph.vertices)
    if seed:
        number = np.random.default_rng(seed).permutation(graph.vertices)
    shuffled = Graph(graph.vertices, number[graph.edges], graph.weights)
    with TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("graph", "target", "map")]
        Path(files[0]).write_text(graph_text(shuffled))
        Path(files[1]).write_text(target)
        subprocess.run(
            [str(_program()), *files, "/dev/null", *options],
            check=True,
            capture_output=True,
        )
        found = np.loadtxt(files[2], dtype=np.int64, skiprows=1, ndmin=2)
    terminal = np.empty(graph.vertices, dtype=np.int64)
    terminal[found[:, 0]] = found[:, 1]
    return terminal[number]


def graph_text(graph: Graph) -> str:
    """The graph in Scotch's format: a row a vertex with weights and neighbours."""
    start, neighbours, weights = graph.rows
    pairs = np.stack([weights, neighbours], axis=1).ravel()
    words = list(map(str, pairs.tolist()))
    bounds = (2 * start).tolist()
    lines = [
        f"{(end - begin) // 2} {' '.join(words[begin:end])}"
        for begin, end in pairwise(bounds)
    ]
    head = f"0\n{graph.vertices} {len(neighbours)}\n0 010\n"
    return head + "\n".join(lines) + "\n"
