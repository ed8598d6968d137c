"""The cut bound never exceeds the optimum, found by trying every placement."""

from __future__ import annotations

import random

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.solve.bounds.cut import cut_bound
from placer.topology.model import Tier, Topology

WEIGHTS = (0, 1, 2, 3, 5, 8, 20, 0.5)
RING_AXES = ("tp", "cp", "dp", "edp")


def split_index(index: int, sizes: list[int]) -> list[int]:
    """Digits of ``index``, first size fastest."""
    digits = []
    for size in sizes:
        digits.append(index % size)
        index //= size
    return digits


def plain_edges(job: Job) -> dict[tuple[int, int], float]:
    """Weighted edges by comparing the coordinates of every pair of ranks."""
    p = job.parallelism
    order = list(p.order)
    dense = {"tp": p.tp, "cp": p.cp, "ep": 1, "pp": p.pp, "dp": p.dp}
    edp = p.tp * p.cp * p.dp // (p.ep * p.etp)
    expert = {"tp": p.etp, "cp": 1, "ep": p.ep, "pp": p.pp, "dp": edp}
    places = []
    for rank in range(p.world_size):
        place = dict(zip(order, split_index(rank, [dense[a] for a in order])))
        inner = dict(zip(order, split_index(rank, [expert[a] for a in order])))
        place.update(ep=inner["ep"], etp=inner["tp"], edp=inner["dp"])
        places.append(place)
    sizes = {**dense, "ep": p.ep, "edp": edp}
    fixed = {
        "tp": ("cp", "pp", "dp"),
        "cp": ("tp", "pp", "dp"),
        "pp": ("tp", "cp", "dp"),
        "dp": ("tp", "cp", "pp"),
        "ep": ("etp", "edp", "pp"),
        "edp": ("etp", "ep", "pp"),
    }
    edges: dict[tuple[int, int], float] = {}
    for axis, others in fixed.items():
        for i, a in enumerate(places):
            for j in range(i):
                b = places[j]
                if any(a[o] != b[o] for o in others):
                    continue
                gap = abs(a[axis] - b[axis])
                closes = axis in RING_AXES and gap == sizes[axis] - 1
                if gap == 1 or axis == "ep" or closes:
                    weight = job.weights.get(axis, 0)
                    edges[j, i] = edges.get((j, i), 0) + weight
    return edges


def optimum(topology: Topology, job: Job) -> float:
    """Least hop cost over all placements; only branches that already lose are left."""
    edges = plain_edges(job)
    ranks, nodes = job.world_size, len(topology.node_names)
    back = [[(j, w) for (j, i), w in edges.items() if i == r] for r in range(ranks)]
    distance = [[0.0] * nodes for _ in range(nodes)]
    for a in range(nodes):
        for b in range(nodes):
            for t, tier in enumerate(topology.tiers):
                if topology.domain_of_node[t][a] == topology.domain_of_node[t][b]:
                    distance[a][b] = tier.distance
                    break
    free = [int(g) for g in topology.gpus_of_node]
    node_of: list[int] = []
    best = float("inf")

    def extend(cost: float) -> None:
        nonlocal best
        if cost >= best:
            return
        rank = len(node_of)
        if rank == ranks:
            best = cost
            return
        for node in range(nodes):
            if free[node]:
                free[node] -= 1
                added = sum(w * distance[node_of[j]][node] for j, w in back[rank])
                node_of.append(node)
                extend(cost + added)
                node_of.pop()
                free[node] += 1

    extend(0.0)
    return best


def random_job(rng: random.Random, most: int) -> Job:
    """A job of 2 to ``most`` ranks with random axes, order, experts and weights."""
    while True:
        tp, cp, pp, dp = (rng.choice((1, 1, 2, 2, 3, 4, 5, 6, 8)) for _ in range(4))
        if 2 <= tp * cp * pp * dp <= most:
            break
    stage = tp * cp * dp
    ep, etp = 1, rng.choice((1, tp))
    order = ["tp", "cp", "ep", "dp", "pp"]
    if rng.random() < 0.5:
        ep = rng.choice([e for e in range(1, stage + 1) if stage % (e * etp) == 0])
    if ep == 1:
        etp = tp
        rng.shuffle(order)
    weights = {a: rng.choice(WEIGHTS) for a in ("tp", "cp", "pp", "dp", "ep", "edp")}
    weights = {axis: w for axis, w in weights.items() if w or rng.random() < 0.5}
    axes = Parallelism(
        tp=tp, cp=cp, ep=ep, pp=pp, dp=dp, etp=etp, order=tuple(order)
    )
    return Job(name="random", parallelism=axes, weights=weights)


def random_machine(rng: random.Random, ranks: int) -> Topology:
    """A machine of one to four tiers with a few spare GPUs, nodes of unequal size."""
    gpus = []
    while sum(gpus) < ranks or (rng.random() < 0.3 and sum(gpus) < ranks + 4):
        gpus.append(rng.choice((1, 2, 2, 3, 4)))
    nodes, tiers = len(gpus), rng.randint(1, 4)
    rows = [list(range(nodes))]
    for _ in range(tiers - 2):
        cut = rng.choice((2, 3))
        named = [domain // cut for domain in rows[-1]]
        rows.append(named)
    if tiers > 1:
        rows.append([0] * nodes)
    else:
        gpus, rows = [sum(gpus)], [[0]]
    distances = [rng.choice((0, 1, 1, 2, 4, 9)) for _ in rows]
    if rng.random() < 0.8:
        distances.sort()
    return machine(gpus, rows, distances)


def machine(
    gpus: list[int], rows: list[list[int]], distances: list[float]
) -> Topology:
    """A topology from GPUs of each node and the node's domain at each tier."""
    tiers = tuple(
        Tier(f"t{i}", 1e9, 1e-6, i == 0, 1.0, 1.0, float(d))
        for i, d in enumerate(distances)
    )
    return Topology(
        name="random",
        tiers=tiers,
        node_names=tuple(f"n{i}" for i in range(len(gpus))),
        gpus_of_node=np.array(gpus),
        bandwidth_factor=np.ones(len(gpus)),
        domain_of_node=np.array(rows),
        domain_names=tuple(tuple(f"d{i}" for i in range(max(row) + 1)) for row in rows),
    )


@pytest.mark.parametrize("seed", range(200))
def test_bound_is_at_most_the_optimum(seed: int) -> None:
    """No placement of a random tiny job on a random machine costs less than the bound."""
    rng = random.Random(seed)
    job = random_job(rng, most=8)
    topology = random_machine(rng, job.world_size)
    best = optimum(topology, job)
    bound = cut_bound(topology, job)
    assert bound.value <= best + 1e-9
