"""Local search finds what is best where that is known: by trying all, or by hand."""

from itertools import combinations, permutations
from math import inf

import numpy as np
import pytest

from placer.cost.step import StepModel
from placer.job.axes import Parallelism
from placer.job.model import Compute, Job
from placer.job.models import Model
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.annealing.annealed import annealed, annealed_in_full
from placer.solve.problem.compiled import Problem
from placer.solve.run.budget import Budget
from placer.solve.score import is_built
from placer.solve.search import solve
from placer.topology.model import Tier
from tests.allocate.machines import racks, training
from tests.marks import slow
from tests.solve.construct.test_whole_groups import machine as leaves
from tests.solve.oracle import step_time
from tests.solve.random_cases import machine_of
from tests.solve.solving import known

compiled = pytest.mark.skipif(not is_built(), reason="the compiled part is not built")


def walked(problem, least, start=None, method=annealed):
    """What is found from a placement or the usual orders, until it is so good.

    Until nothing more is found where that is 0.
    """
    wanted = problem.with_params(enough_value=least)
    found = known(wanted, start)
    method(wanted, found, found.budget)
    assert problem.allows(found.best)
    return found


@pytest.fixture(params=[annealed, annealed_in_full])
def method(request):
    """With the compiled cost, and priced in full."""
    if request.param is annealed and not is_built():
        pytest.skip("the compiled part is not built")
    return request.param


def staged(pp, dp, seconds=0.6):
    return Job(
        name="chunks",
        parallelism=Parallelism(tp=4, pp=pp, dp=dp, etp=4),
        model=Model("m", 48, 8192, 22016, 64, 8, 32000),
        sequence=8192,
        micro_batches=8,
        compute=Compute(micro_batch_time=seconds),
        require={"tp": "node"},
        launcher="node-contiguous",
    )


@pytest.mark.parametrize(
    ("leaf", "degrees"),
    [
        ([0, 0, 0, 1, 1, 1, 2], (2, 3)),
        pytest.param([0, 1, 2, 0, 1, 2, 0], (3, 2), marks=pytest.mark.slow),
        pytest.param([0, 1, 2, 0, 1, 2, 0], (1, 6), marks=pytest.mark.slow),
    ],
)
def test_as_good_as_every_permutation(leaf, degrees, method):
    """Six units on seven nodes: nothing beats the search, by the plain-loop scorer."""
    topology, work = leaves([4] * len(leaf), leaf), staged(*degrees)
    kinds = {}
    for nodes in permutations(range(7), 6):
        first = {}
        look = [first.setdefault(leaf[node], len(first)) for node in nodes]
        held = [leaf.count(leaf[node]) for node in nodes]
        kinds.setdefault((tuple(look), tuple(held)), nodes)
    least = min(
        step_time(topology, work, tuple(np.repeat(nodes, 4)))
        for nodes in kinds.values()
    )
    problem, start = Problem.of(topology, work, "time"), np.arange(work.world_size)
    found = walked(problem, least * (1 + 1e-9), start, method)
    value = StepModel(topology, work).step(found.best).step_time_s
    assert value == pytest.approx(least, rel=1e-9)


# Launches by nodes of several sizes.


@compiled
def test_nodes_end_where_stages_do():
    """A stage of 13 x 2 ranks takes seven nodes of 4, the last one half: a rack."""
    fast = [Tier(name, 900e9, 1e-6, True) for name in ("node", "rack")]
    own = [*fast, Tier("cluster", 100e9, 8e-6, False, distance=18.0)]
    hosts = machine_of([4] * 56, [[n // 7 for n in range(56)], [0] * 56], own)
    weights = {"tp": 1000.0, "pp": 1.0, "dp": 100.0}
    odd = Job("odd", Parallelism(tp=2, pp=8, dp=13), weights=weights)
    problem = Problem.of(hosts, odd, "hop-cost").with_params(enough_gap=0.0)
    found = solve(problem, Budget(60.0))
    assert problem.allows(found.placement.gpu_of_rank)
    assert found.value == 8 * (13 * 1000 + 26 * 100) + 7 * 26 * 18


# Pipelines behind thin uplinks, against all runs of stages laid alike.
STAGES = 4


def least_of_runs(problem, room, racks_there, replicas):
    """The best of all cuts and numbers of copies, rack by rack; a stage a node."""
    best = inf
    for count in range(2, STAGES + 1):
        for cuts in combinations(range(STAGES), count):
            for copies in range(1, replicas + 1):
                nodes = np.full((replicas, STAGES), -1)
                rack, fits = 0, True
                for begin, end in zip(cuts, (*cuts[1:], cuts[0] + STAGES), strict=True):
                    stages = [s % STAGES for s in range(begin + 1, end + 1)]
                    here = min(copies, room // len(stages))
                    for first in range(0, replicas, here):
                        own = range(first, min(first + here, replicas))
                        fits &= rack < racks_there
                        cells = [(replica, s) for replica in own for s in stages]
                        for place, cell in enumerate(cells):
                            nodes[cell] = rack * room + place
                        rack += 1
                if fits:
                    gpus = problem.machine.first_gpu_of_node[nodes][..., None]
                    # From replica, stage, tp member to the order tp, dp, pp.
                    by_rank = (gpus + np.arange(4)).transpose(1, 0, 2).ravel()
                    best = min(best, problem.model.step(by_rank).step_time_s)
    return best


@compiled
@pytest.mark.parametrize("there", [24, *slow([10, 6])])
@pytest.mark.parametrize("thin", [4, 16])
def test_as_good_as_all_that_are_laid_so(there, thin):
    """From the usual order; on ten racks 0.3 % is left to runs of 3 and 1 stages."""
    topology = racks({f"r{i:02}": 4 for i in range(there)}, oversubscription=thin)
    work = training(tp=4, pp=STAGES, vp=4, dp=6, require={"tp": "node"})
    problem = Problem.of(topology, work, "time")
    wanted = least_of_runs(problem, 4, there, 6) * 1.0035
    found = walked(problem, wanted)
    assert found.value <= wanted
    assert not violations(Placement(found.best), topology, work)
