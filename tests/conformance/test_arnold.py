"""Arnold's three settings: rows of nodes over minipods (arXiv 2509.15940, table 1).

Nodes have 8 GPUs. A row is the nodes of one pipeline: as many as stages, each with the
tensor-parallel groups of 8 / TP replicas. The free nodes of the minipods are
unpublished and drawn here. Three numbers are compared: minipods used, and the largest
number of minipods that a pp group and a dp group span.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
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
    def rows(self) -> int:
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


def free_nodes(setting: Setting, seed: int) -> list[int]:
    """Free nodes of every minipod, drawn so that they sum to the setting's."""
    rng = random.Random(seed)
    room = [1] * setting.minipods
    weights = [rng.uniform(0.2, 1.0) for _ in room]
    for pod in rng.choices(range(len(room)), weights, k=setting.nodes - len(room)):
        room[pod] += 1
    return room


def spread_of(minipod: np.ndarray) -> Spread:
    """The measures of a grid of minipods, shape (rows, stages)."""
    return Spread(
        len(np.unique(minipod)),
        max(len(np.unique(row)) for row in minipod),
        max(len(np.unique(column)) for column in minipod.T),
    )


def grid(counts: Counts, stages: int) -> np.ndarray:
    """Minipod of every row and stage, rows laid along the minipods in turn."""
    pods = np.arange(counts.shape[1])
    return np.array([np.repeat(pods, row)[:stages] for row in counts])


def placed(setting: Setting, room: list[int]) -> Spread:
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
    spans = {
        axis: max(len(np.unique(minipod[row])) for row in axes.ranks_of_group[axis])
        for axis in ("pp", "dp")
    }
    return Spread(len(np.unique(minipod)), **spans)


def milp(setting: Setting, room: list[int]) -> Counts:
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


def rounded(share: np.ndarray, setting: Setting, room: list[int]) -> Counts:
    """Whole nodes: each row's shares rounded down, the rest where most is missing."""
    counts = np.floor(share * setting.pp + 1e-6).astype(int)
    free = np.array(room) - counts.sum(axis=0)
    for row, wanted in zip(counts, share * setting.pp, strict=True):
        while row.sum() < setting.pp:
            missing = np.where(free > 0, wanted - row, -np.inf)
            pod = int(missing.argmax())
            row[pod] += 1
            free[pod] -= 1
    return counts


def best_fit(setting: Setting, room: list[int]) -> Counts:
    """Each row in the fullest minipod with room for it, the last ones over several."""
    return one_by_one(setting, room, lambda free: int(np.argmin(free)))


def random_fit(setting: Setting, room: list[int]) -> Counts:
    """Each row in some minipod with room for it."""
    rng = random.Random(0)
    return one_by_one(setting, room, lambda free: rng.randrange(len(free)))


def one_by_one(
    setting: Setting, room: list[int], choose: Callable[[list[int]], int]
) -> Counts:
    """Rows one after the other, each in a minipod of those with room for it."""
    free = list(room)
    counts = np.zeros((setting.rows, len(room)), dtype=int)
    for row in counts:
        left = setting.pp
        while left:
            large = [p for p, nodes in enumerate(free) if nodes >= left]
            if large:
                pod = large[choose([free[p] for p in large])]
            else:
                pod = int(np.argmax(free))
            taken = min(left, free[pod])
            row[pod] += taken
            free[pod] -= taken
            left -= taken
    return counts


def packing(setting: Setting, room: list[int]) -> Counts:
    """Nodes in order, the roomiest minipods first, whatever the rows."""
    order = np.argsort(-np.array(room), kind="stable")
    nodes = np.repeat(order, np.array(room)[order])[: setting.rows * setting.pp]
    by_row = nodes.reshape(setting.rows, setting.pp)
    return np.array([np.bincount(row, minlength=len(room)) for row in by_row])


def bisection(setting: Setting, room: list[int]) -> Counts:
    """Nodes of rows in order, divided by room between halves of the minipods."""
    counts = np.zeros((setting.rows, len(room)), dtype=int)

    def divide(nodes: list[int], pods: list[int]) -> None:
        if len(pods) == 1:
            np.add.at(counts[:, pods[0]], nodes, 1)
            return
        halves = pods[: len(pods) // 2], pods[len(pods) // 2 :]
        first, second = (sum(room[p] for p in half) for half in halves)
        share = len(nodes) * first // (first + second) // setting.pp * setting.pp
        taken = min(max(share, len(nodes) - second), first)
        divide(nodes[:taken], halves[0])
        divide(nodes[taken:], halves[1])

    rows = [row for row in range(setting.rows) for _ in range(setting.pp)]
    divide(rows, list(range(len(room))))
    return counts


BASELINES = (best_fit, random_fit, packing, bisection)


def check_drawn(name: str, seed: int) -> None:
    """Compare with the program and the baselines on minipods drawn for a setting."""
    setting = SETTINGS[name]
    room = free_nodes(setting, seed)
    ours = placed(setting, room)
    theirs = [milp(setting, room), *(fit(setting, room) for fit in BASELINES)]
    for counts in theirs:
        assert (counts.sum(axis=0) <= room).all()
        assert (counts.sum(axis=1) == setting.pp).all()
        other = spread_of(grid(counts, setting.pp))
        assert all(a <= b for a, b in zip(ours, other, strict=True)), (ours, other)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_no_group_is_spread_wider(name: str) -> None:
    """No more minipods, and no wider groups, than any other way to place the rows."""
    check_drawn(name, 0)


def check_tight(name: str, seed: int) -> None:
    """Compare with the program where the minipods have hardly a node to spare."""
    setting = SETTINGS[name]
    need = setting.rows * setting.pp
    rng = random.Random(seed)
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


def test_rows_that_must_be_cut() -> None:
    """With hardly a node to spare rows are cut, into no more pieces than theirs."""
    check_tight("i", 0)


@pytest.mark.slow
def test_512_nodes_of_1019() -> None:
    """A job of 512 nodes keeps its 64 rows whole in as few minipods as hold them."""
    setting = SETTINGS["iii"]._replace(dp=64)
    room = free_nodes(setting, 0)
    rows_in = sorted((nodes // setting.pp for nodes in room), reverse=True)
    fewest = next(k for k in range(1, 12) if sum(rows_in[:k]) >= setting.rows)
    assert placed(setting, room) == Spread(fewest, 1, fewest)
