"""All ranks in company at once, or a proof that they cannot be."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from benchmarks.traffic_graphs import of_networkx, stencil, weighted_stencil
from placer.solve.bounds.network.best_network import best_of_problem
from placer.solve.bounds.traffic.company import ROUNDING, Companies, climbed
from placer.solve.bounds.traffic.covers import cover
from placer.solve.bounds.traffic.traffic import step_with
from placer.solve.construct.traffic.kept_company import (
    briefly_kept_company,
    kept_company,
)
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import ENDLESS, Budget
from placer.solve.run.incumbent import Incumbent
from tests.solve.bounds.test_company import least, machine_of, small_case, with_traffic
from tests.solve.test_communicators import job_of

PROGRAM_WORK = 5.0


def bound(problem: Problem, work: int) -> float:
    network = best_of_problem(problem, 1)
    if not network.fabric.can_leave_scale_up:
        return 0.0
    companies = Companies.of(network, problem.job.traffic, work)
    rooms = network.capacities[network.fabric.scale_up_tier]

    def later_s(seconds: float) -> float | None:
        return cover(companies, rooms, seconds, PROGRAM_WORK, ENDLESS).later_s

    seconds = climbed(later_s, 0.0, 1e-6) * (1 - ROUNDING)
    return step_with(problem.model, network, seconds)


def problem_of(graph, nodes: int, room: int) -> Problem:
    senders, receivers, size = graph
    ranks = int(max(senders.max(), receivers.max())) + 1
    who = np.random.default_rng(1).permutation(ranks)
    traffic = with_traffic(who[senders].tolist(), who[receivers].tolist(), size)
    return Problem.of(machine_of([room] * nodes), job_of(ranks, traffic=traffic))


def kept(problem: Problem) -> Incumbent:
    budget = Budget(60.0)
    incumbent = Incumbent(problem, budget)
    kept_company(problem, incumbent, budget)
    return incumbent


@pytest.mark.parametrize(
    ("graph", "nodes", "room", "out"),
    [
        # A ring of five is no row of pairs, so squares do not fill it.
        (stencil(5, 8, periodic=True), 10, 4, 3),
        (stencil(4, 8, periodic=True), 8, 4, 2),
        # With spare room they need not.
        (stencil(4, 5), 6, 4, 2),
    ],
)
def test_squares_fill_a_torus_or_not(graph, nodes, room, out) -> None:
    """And what is found takes as long as the bound."""
    problem = problem_of(graph, nodes, room)
    assert bound(problem, 10**7) == pytest.approx(out * graph[2][0] / 50e9)
    found = kept(problem)
    assert found.value == pytest.approx(found.bound)


def test_little_work_parts_a_sheet_of_hexagons() -> None:
    """Each rank of a hexagon has two neighbours in it, and one elsewhere."""
    sheet = nx.convert_node_labels_to_integers(nx.hexagonal_lattice_graph(13, 17))
    graph = of_networkx(sheet)
    problem = problem_of(graph, 88, 8)
    incumbent = Incumbent(problem, Budget(60.0))
    briefly_kept_company(problem, incumbent, Budget(60.0))
    assert incumbent.value == pytest.approx(graph[2][0] / 50e9)
    assert incumbent.value == pytest.approx(incumbent.bound)


@pytest.mark.slow
def test_nine_points_leave_five_elsewhere() -> None:
    """Of eight cells that touch at sides or corners some have five others."""
    diagonal = nx.strong_product(nx.path_graph(20), nx.path_graph(19))
    graph = of_networkx(diagonal)
    problem = problem_of(graph, 52, 8)
    found = kept(problem)
    assert found.bound == pytest.approx(5 * graph[2][0] / 50e9)


def test_odd_sides_are_covered_with_dominoes() -> None:
    """21 x 17 with three times as much one way, on nodes of four."""
    graph = weighted_stencil((21, 17), (1, 3))
    found = kept(problem_of(graph, 114, 4))
    assert found.value == pytest.approx(np.unique(graph[2]).sum() / 50e9)
    assert found.bound == pytest.approx(found.value)


def check(seeds: range) -> float:
    tight = 0
    for seed in seeds:
        problem = small_case(seed)
        best = least(problem)
        for work in (200, 10**6):
            value = bound(problem, work)
            assert value <= best * (1 + 1e-9), seed
        tight += value >= best * (1 - 1e-6)
    return tight / len(seeds)


def test_no_placement_is_below_it() -> None:
    """Against every placement of tiny cases, with little work and with enough."""
    assert check(range(12)) > 0


@pytest.mark.slow
def test_no_placement_of_many_is_below_it() -> None:
    """The same of more cases."""
    assert check(range(12, 80)) > 0.02
