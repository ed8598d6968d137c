"""Nestings of axes in equal domains, against all boxes."""

import random
from itertools import product
from math import prod

import numpy as np
import pytest

import placer
from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.construct.fills import nested
from placer.solve.problem.compiled import Problem
from tests.solve.random_cases import random_axes
from tests.solve.solving import alone


@pytest.mark.parametrize("seed", range(20))
def test_best_nesting_is_the_cheapest_of_all_boxes(seed):
    """No box of the axes fills nodes at a smaller cost, whatever is split."""
    rng = random.Random(seed)
    gpus, nodes = rng.choice((2, 4, 6)), rng.choice((2, 3, 4))
    machine = placer.read_topology(f"cluster:1 node:{nodes} gpu:{gpus}")
    axes = random_axes(rng, gpus * nodes)
    axes = Parallelism(axes.tp, axes.cp, 1, axes.pp, axes.dp, etp=axes.tp)
    weights = {axis: float(rng.choice((1, 3, 20))) for axis in ("tp", "cp", "pp", "dp")}
    job = Job("j", axes, weights=weights, launcher="free")
    problem = Problem.of(machine, job, "hop-cost")
    at = np.array([axes.coordinates[axis] for axis in weights]).T
    sizes = [axes.size(axis) for axis in weights]
    costs = []
    for box in product(*([f for f in range(1, n + 1) if not n % f] for n in sizes)):
        if prod(box) == gpus:
            in_boxes = np.lexsort((at // box).T)
            costs.append(problem.goal.value(np.argsort(in_boxes)))
    assert alone(nested, problem).value <= min(costs) * (1 + 1e-9)
