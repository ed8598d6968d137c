"""Peers get the right question and their answers are made to fit."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.instances import Instance, build, load
from benchmarks.peers import metis, mt_kahypar, orders, scotch
from benchmarks.peers.answer import repaired
from benchmarks.peers.problem import (
    UNITS,
    Graph,
    MappingProblem,
    problem_of,
    unit_size,
)
from benchmarks.run import PEERS
from placer.cost.hop_cost import hop_cost
from placer.job.axes import Parallelism
from placer.placement.placement import Placement

if TYPE_CHECKING:
    from pathlib import Path

    from placer.job.model import Job
    from placer.topology.model import Topology

WEIGHTS = {"tp": 40, "cp": 8, "pp": 4, "dp": 2, "ep": 6, "edp": 2}


def machine(
    capacities: list[int], axes: Parallelism, hier: tuple[int, int] = (2, 2)
) -> tuple[Topology, Job]:
    weights = {
        a: w for a, w in WEIGHTS.items() if axes.ep > 1 or a not in ("ep", "edp")
    }
    if axes.ep > 1:
        del weights["dp"]
    sizes = np.array(capacities)
    return build("small", Instance(axes, weights, hier, (1, 5, 7), lambda: sizes))


def mapped_cost(problem: MappingProblem, leaf_of_vertex: np.ndarray) -> int:
    """Weight x distance beyond a leaf, edge by edge."""
    cost = 0
    for (u, v), weight in zip(
        problem.graph.edges.tolist(), problem.graph.weights.tolist(), strict=True
    ):
        a, b = leaf_of_vertex[u], leaf_of_vertex[v]
        tier = sum(row[a] != row[b] for row in problem.domain_of_leaf[:-1])
        cost += weight * int(problem.distance[tier] - problem.distance[0])
    return cost


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "axes", [Parallelism(tp=2, cp=2, pp=2, dp=3), Parallelism(ep=4, dp=8, pp=2)]
)
def test_mapping_cost_is_the_hop_cost(axes: Parallelism, unit: str) -> None:
    """Units kept whole, the graph's cost is the hop cost beyond that inside leaves."""
    topology, job = machine([8, 8, 4, 8], axes)
    problem = problem_of(topology, job, unit)
    assert problem is not None
    slots = np.repeat(np.arange(len(problem.capacity)), problem.capacity)
    rng = np.random.default_rng(0)
    leaf_of_vertex = rng.permutation(slots)[: problem.graph.vertices]
    leaf_of_rank = np.repeat(leaf_of_vertex, problem.unit_size)
    placement = Placement.on_nodes(topology, leaf_of_rank)
    whole = job.world_size
    alone = Placement(np.arange(whole))
    inside_topology, _ = machine([whole, 4, 4, 4], axes)
    inside = hop_cost(inside_topology, job, alone)
    cost = hop_cost(topology, job, placement)
    assert mapped_cost(problem, leaf_of_vertex) == cost - inside


def test_units() -> None:
    """A unit is a rank, a tp group, or all that the next axes link."""
    axes = Parallelism(tp=4, cp=2, pp=8, dp=3)
    assert [unit_size(axes, unit) for unit in UNITS] == [1, 4, 8]
    assert unit_size(Parallelism(ep=16, dp=32), "stage") == 16


def test_units_that_do_not_fit() -> None:
    """Stages of 4 do not fit where every leaf holds 6 and GPUs are short."""
    topology, job = machine([6, 6, 6, 6], Parallelism(tp=2, cp=2, dp=5))
    assert problem_of(topology, job, "stage") is None
    assert problem_of(topology, job, "tp") is not None
    assert orders.place(topology, job, unit="stage") is None


def test_repair_moves_the_loosest_to_the_nearest() -> None:
    """The vertex without weight to its full leaf moves next to its neighbour."""
    # 0-1 strong, 2 tied to 3 only; 2 is on leaf 0 with 0 and 1, which holds two.
    graph = Graph(4, np.array([[0, 1], [2, 3]]), np.array([9, 1]))
    domains = np.array([[0, 1, 2], [0, 1, 1], [0, 0, 0]])
    problem = MappingProblem(
        graph, 1, np.array([2, 1, 1]), domains, np.array([1, 5, 7])
    )
    found, moved = repaired(problem, np.array([0, 0, 0, 1]))
    assert (found.tolist(), moved) == ([0, 0, 2, 1], 1)


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("capacities", "hier"),
    [
        ([8, 12, 5, 8], (2, 2)),
        ([24], (1, 1)),
        ([8, 9, 8], (1, 3)),
    ],
)
def test_answers_fit(
    name: str, unit: str, capacities: list[int], hier: tuple[int, int]
) -> None:
    """Every tool that is here puts all ranks on leaves with room, units whole."""
    peer = PEERS[name]
    if peer.version() is None:
        pytest.skip(f"{name} is not installed")
    axes = Parallelism(tp=2, cp=2, pp=2, dp=3)
    topology, job = machine(capacities, axes, hier)
    size = unit_size(job.parallelism, unit)
    for variant in peer.VARIANTS:
        found = peer.place(topology, job, unit=unit, variant=variant, seed=1)
        if found is None:  # a target that this machine has not
            continue
        load = np.bincount(found.leaf_of_rank, minlength=len(capacities))
        assert (load <= topology.gpus_of_node).all()
        assert len(found.leaf_of_rank) == job.world_size
        groups = found.leaf_of_rank.reshape(-1, size)
        assert (groups == groups[:, :1]).all()


def test_levels_with_an_only_child() -> None:
    """A level with one child each gives its cost to the level around it, or none."""
    axes = Parallelism(tp=2, cp=2, pp=2, dp=3)
    for hier, levels in (((1, 3), [(3, 6)]), ((3, 1), [(3, 4)]), ((1, 1), [])):
        problem = problem_of(*machine([24] * max(hier), axes, hier), "rank")
        assert problem is not None
        assert scotch.tree_of(problem).levels(problem) == levels


def test_orders() -> None:
    """Orders by name are the two plain orders; hosts in order of name are as given."""
    topology, job = load("S64")
    costs = []
    for variant in orders.VARIANTS:
        found = orders.place(topology, job, variant=variant)
        assert found is not None
        placement = Placement.on_nodes(topology, found.leaf_of_rank)
        costs.append(hop_cost(topology, job, placement))
    # 16 ranks a leaf, 4 a stage: Megatron's order keeps 4 replicas of a stage there.
    assert costs[0] == costs[2] > costs[1] == 263_296


def test_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its package or program a tool has no version."""
    monkeypatch.setenv("PATH", "")
    assert scotch.version() is None

    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert metis.version() is None
    assert mt_kahypar.version() is None


def test_scotch_reports_our_cost(tmp_path: Path) -> None:
    """What Scotch says its mapping costs is the hop cost beyond that inside leaves."""
    program = next(filter(None, map(shutil.which, scotch.PROGRAMS)), None)
    if program is None:
        pytest.skip("Scotch is not installed")
    topology, job = machine([8, 8, 8, 8], Parallelism(tp=2, cp=2, pp=2, dp=4))
    problem = problem_of(topology, job, "rank")
    assert problem is not None
    graph, target, found, log = (tmp_path / name for name in ("g", "t", "m", "l"))
    graph.write_text(scotch.graph_text(problem.graph))
    levels = scotch.tree_of(problem).levels(problem)
    assert levels == [(2, 2), (2, 4)]
    target.write_text(scotch.target_text(levels))
    files = [str(path) for path in (graph, target, found, log)]
    command = [program, *files, "-vm", "-b0.0", "-cqb"]
    subprocess.run(command, check=True)
    cost = re.search(r"CommExpan=\S+\s+\((\d+)\)", log.read_text())
    assert cost is not None
    leaf_of_vertex = np.loadtxt(found, dtype=int, skiprows=1)[:, 1]
    assert mapped_cost(problem, leaf_of_vertex) == int(cost[1])


def test_mt_kahypar_reports_our_cost() -> None:
    """What Mt-KaHyPar says its mapping costs is that of the graph on the tree."""
    mtkahypar = pytest.importorskip("mtkahypar")
    topology, job = machine([8, 12, 8, 8], Parallelism(tp=2, cp=2, pp=2, dp=4))
    problem = problem_of(topology, job, "rank")
    assert problem is not None
    tool = mt_kahypar._tool()
    context = tool.context_from_preset(mtkahypar.PresetType.DEFAULT)
    context.set_partitioning_parameters(4, 0.0, mtkahypar.Objective.CUT)
    context.set_individual_target_block_weights(problem.capacity.tolist())
    context.logging = False
    graph = mt_kahypar.graph_of(tool, context, problem.graph)
    target = mt_kahypar.target_of(tool, context, problem, np.arange(4))
    mapped = graph.map_onto_graph(target, context)
    leaf_of_vertex = np.array(mapped.get_partition())
    assert mapped_cost(problem, leaf_of_vertex) == mapped.steiner_tree(target)


def test_published_value_of_another_evaluator() -> None:
    """Another mapper's own cost of an optimal placement of A is half of ours by four.

    SharedMap, weights divided by 4, each edge counted from both ends: 290,816.
    """
    topology, job = load("A")
    found = orders.place(topology, job, variant="replica-major")
    assert found is not None
    placement = Placement.on_nodes(topology, found.leaf_of_rank)
    excess = hop_cost(topology, job, placement) - 34_725_888
    assert 2 * excess / 4 == 290_816
