"""Arnold's three settings: rows of nodes over minipods (arXiv 2509.15940, table 1).

Nodes have 8 GPUs. A row is the nodes of one pipeline: as many as stages, each with the
tensor-parallel groups of 8 / TP replicas. The free nodes of the minipods are
unpublished and drawn here. Three numbers are compared: minipods used, and the largest
number of minipods that a pp group and a dp group span.
"""

import random
from datetime import timedelta
from itertools import count
from typing import NamedTuple

import numpy as np
import pytest
from ortools.math_opt.python import mathopt

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.placement.check import violations
from tests.conformance.machines import WEIGHTS, Host, machine
from tests.solve.solving import solve

GPUS = 8
LIMIT = 20.0  # s
# Weights of minipods used and of the largest spread: the spread first.
USED, SPREAD = 1.0, 100.0

Counts = np.ndarray  # nodes of each row (first axis) in each minipod


class Setting(NamedTuple):
    """Minipods and their nodes in all, and the axes of the job."""

    minipods: int
    nodes: int
    dp: int
    tp: int
    pp: int

    @property
    def rows(self):
        """Pipelines of nodes."""
        return self.dp * self.tp // GPUS


SETTINGS = {
    "i": Setting(3, 18, 12, 4, 2),
    "ii": Setting(5, 438, 24, 4, 8),
    "iii": Setting(11, 1019, 46, 8, 8),
}


class Spread(NamedTuple):
    """Minipods used, and the most that a pp group and a dp group span."""

    used: int
    pp: int
    dp: int


def free_nodes(setting, seed):
    """Free nodes of every minipod, drawn so that they sum to the setting's."""
    rng = random.Random(seed)
    room = [1] * setting.minipods
    weights = [rng.uniform(0.2, 1.0) for _ in room]
    for pod in rng.choices(range(len(room)), weights, k=setting.nodes - len(room)):
        room[pod] += 1
    return room


def spread_of(minipod):
    """The measures of a grid of minipods, shape (rows, stages)."""
    return Spread(
        len(np.unique(minipod)),
        max(len(np.unique(row)) for row in minipod),
        max(len(np.unique(column)) for column in minipod.T),
    )


def grid(counts, stages):
    """Minipod of every row and stage, rows laid along the minipods in turn."""
    pods = np.arange(counts.shape[1])
    return np.array([np.repeat(pods, row)[:stages] for row in counts])


def placed(setting, room):
    """The measures of our placement."""
    hosts = [
        Host(f"p{pod}n{i}", GPUS, (f"p{pod}",))
        for pod, nodes in enumerate(room)
        for i in range(nodes)
    ]
    topology = machine(("node", "minipod", "cluster"), hosts)
    axes = Parallelism(tp=setting.tp, pp=setting.pp, dp=setting.dp, etp=setting.tp)
    job = Job("arnold", axes, require={"tp": "node"}, weights=WEIGHTS)
    found = solve(topology, job, time_limit=LIMIT)
    assert violations(found.placement, topology, job) == []
    minipod = topology.domain_of_gpu[1][found.placement.gpu_of_rank]
    pp, dp = (
        max(len(np.unique(minipod[row])) for row in axes.ranks_of_group[axis])
        for axis in ("pp", "dp")
    )
    return Spread(len(np.unique(minipod)), pp, dp)


def milp(setting, room):
    """Arnold's program, its fractions of rows rounded to nodes."""
    model = mathopt.Model()
    rows, pods = range(setting.rows), range(setting.minipods)
    share = [[model.add_variable(lb=0.0, ub=1.0) for _ in pods] for _ in rows]
    touches = [[model.add_binary_variable() for _ in pods] for _ in rows]
    used = [model.add_binary_variable() for _ in pods]
    most = model.add_variable(lb=1.0)
    for i in rows:
        model.add_linear_constraint(sum(share[i]) == 1.0)
        model.add_linear_constraint(sum(touches[i]) <= most)
        for j in pods:
            model.add_linear_constraint(share[i][j] <= touches[i][j])
    for j in pods:
        held = sum(share[i][j] for i in rows)
        model.add_linear_constraint(held <= room[j] / setting.pp * used[j])
    model.minimize(USED * sum(used) + SPREAD * most)
    found = mathopt.solve(
        model,
        mathopt.SolverType.GSCIP,
        params=mathopt.SolveParameters(time_limit=timedelta(seconds=LIMIT)),
    )
    value = found.variable_values()
    return rounded(np.array([[value[v] for v in row] for row in share]), setting, room)


def rounded(share, setting, room):
    """Whole nodes: each row's shares rounded down, the rest where most is missing."""
    counts = np.floor(share * setting.pp + 1e-6).astype(int)
    free = np.array(room) - counts.sum(axis=0)
    for row, wanted in zip(counts, share * setting.pp, strict=True):
        while row.sum() < setting.pp:
            missing = np.where(free > 0, wanted - row, -np.inf)
            pod = int(missing.argmax())
            row[pod] += 1
            free[pod] -= 1
    assert (counts.sum(axis=0) <= room).all()
    return counts


def test_rows_that_must_be_cut():
    """With hardly a node to spare rows are cut, into no more pieces than theirs."""
    setting = SETTINGS["i"]
    need = setting.rows * setting.pp
    rng = random.Random(0)
    room = [need // setting.minipods] * setting.minipods
    for _ in range(3 * need):
        giver, taker = rng.sample(range(setting.minipods), 2)
        if room[giver] > 1:
            room[giver] -= 1
            room[taker] += 1
    room[0] += need - sum(room) + rng.choice((0, need // 16, need // 8))
    ours = placed(setting, room)
    other = spread_of(grid(milp(setting, room), setting.pp))
    assert all(a <= b for a, b in zip(ours, other, strict=True)), (ours, other)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dp"), [("i", 12), ("ii", 24), ("iii", 46), ("iii", 64)]
)
def test_rows_stay_whole(name, dp):
    """In as few minipods as have the nodes; their program spreads no group less.

    The last is a job of 512 nodes of 1,019.
    """
    setting = SETTINGS[name]._replace(dp=dp)
    room = free_nodes(setting, 0)
    roomiest, need = sorted(room, reverse=True), setting.rows * setting.pp
    fewest = next(k for k in count(1) if sum(roomiest[:k]) >= need)
    ours = placed(setting, room)
    assert ours == Spread(fewest, 1, fewest)
    other = spread_of(grid(milp(setting, room), setting.pp))
    assert all(a <= b for a, b in zip(ours, other, strict=True)), (ours, other)
