"""The cut bound never exceeds the optimum, found by trying every placement."""

from __future__ import annotations

import random

import numpy as np
import pytest

from placer.job.axes import Parallelism
from placer.job.model import Job
from placer.topology.model import Tier, Topology
from tests.solve.bounds.hop_bound import cut_bound

WEIGHTS = (0, 1, 2, 3, 5, 8, 20, 0.5)
DENSE_FAMILY = ("tp", "cp", "pp", "dp")
EXPERT_FAMILY = ("ep", "etp", "pp", "edp")


def coordinates(rank: int, order: list[str], sizes: dict[str, int]) -> dict[str, int]:
    """Digits of ``rank``, first axis of the order fastest."""
    at = {}
    for axis in order:
        at[axis] = rank % sizes[axis]
        rank //= sizes[axis]
    return at


def plain_edges(job: Job) -> list[tuple[int, int, float]]:
    """Weighted edges from the groups of ranks that share all other coordinates."""
    p = job.parallelism
    order = list(p.order)
    dense = {"tp": p.tp, "cp": p.cp, "ep": 1, "pp": p.pp, "dp": p.dp}
    edp = p.tp * p.cp * p.dp // (p.ep * p.etp)
    expert = {"tp": p.etp, "cp": 1, "ep": p.ep, "pp": p.pp, "dp": edp}
    own_experts = p.ep > 1 or p.etp != p.tp
    groups: dict[tuple[object, ...], list[int]] = {}
    for rank in range(p.world_size):
        at = coordinates(rank, order, dense)
        inner = coordinates(rank, order, expert)
        at["etp"] = inner["tp"] if own_experts else at["tp"]
        at["edp"] = inner["dp"] if own_experts else at["dp"] * p.cp + at["cp"]
        at["ep"] = inner["ep"] if own_experts else 0
        for axis in job.weights:
            family = EXPERT_FAMILY if axis in ("ep", "edp") else DENSE_FAMILY
            others = tuple(at[name] for name in family if name != axis)
            groups.setdefault((axis, *others), []).append(rank)
    return [
        (first, second, float(job.weights[key[0]]))
        for key, ranks in groups.items()
        for first, second in group_pairs(key[0], ranks)
    ]


def group_pairs(axis: str, ranks: list[int]) -> list[tuple[int, int]]:
    """Edges of one group: all pairs, a chain or a ring."""
    if axis == "ep":
        return [(a, b) for i, b in enumerate(ranks) for a in ranks[:i]]
    pairs = [(ranks[i - 1], ranks[i]) for i in range(1, len(ranks))]
    if axis != "pp" and len(ranks) > 2:
        pairs.append((ranks[0], ranks[-1]))
    return pairs


def optimum(topology: Topology, job: Job) -> float:
    """Least hop cost over all placements; only branches that already lose are left."""
    edges = plain_edges(job)
    ranks, nodes = job.world_size, len(topology.node_names)
    back = [[(j, w) for j, i, w in edges if i == rank] for rank in range(ranks)]
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
    ep, etp = 1, tp
    order = ["tp", "cp", "ep", "dp"]
    rng.shuffle(order)
    if rng.random() < 0.6:
        etp = rng.choice((1, tp))
        ep = rng.choice([e for e in range(1, stage + 1) if stage % (e * etp) == 0])
        # Experts of their own share the pipeline only when it is outermost.
        order.append("pp")
    else:
        order.insert(rng.randint(0, 4), "pp")
    weights = {a: rng.choice(WEIGHTS) for a in ("tp", "cp", "pp", "dp", "ep", "edp")}
    weights = {axis: w for axis, w in weights.items() if w or rng.random() < 0.5}
    axes = Parallelism(tp=tp, cp=cp, ep=ep, pp=pp, dp=dp, etp=etp, order=tuple(order))
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


def machine(gpus: list[int], rows: list[list[int]], distances: list[float]) -> Topology:
    """A topology from GPUs of each node and the node's domain at each tier."""
    tiers = tuple(
        Tier(f"t{i}", 1e9, 1e-6, i == 0, 1.0, 1.0, float(d))
        for i, d in enumerate(distances)
    )
    return Topology(
        name="random",
        tiers=tiers,
        gpus_of_node=np.array(gpus),
        bandwidth_factor=np.ones(len(gpus)),
        domain_of_node=np.array(rows),
        domain_names=tuple(tuple(f"d{i}" for i in range(max(row) + 1)) for row in rows),
    )


@pytest.mark.parametrize("seed", range(40))
def test_bound_is_at_most_the_optimum(seed: int) -> None:
    """No placement of a random tiny job costs less than the bound."""
    rng = random.Random(seed)
    job = random_job(rng, most=8)
    topology = random_machine(rng, job.world_size)
    best = optimum(topology, job)
    bound = cut_bound(topology, job)
    assert bound.value <= best + 1e-9
