"""Random placements of rings on oversubscribed fabrics, against a flow simulation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from placer.cost.fabric import Fabric
from placer.cost.network import PlacedNetwork
from placer.topology.read import parse_topology
from validation.flows import Racks, ring_seconds
from validation.markdown import percent, table

MACHINES, PLACEMENTS = 50, 6
NVLINK, NIC, SIZE = 900e9, 100e9, 2.0**28
APART = 0.02  # placements whose times differ by more have an order


@dataclass(frozen=True)
class Case:
    """One placement: seconds of the slowest group."""

    machine: int
    uneven: bool  # whether groups drive different numbers of NICs
    simulated: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over simulated, less one."""
        return self.predicted / self.simulated - 1


@cache
def cases() -> tuple[Case, ...]:
    """All placements, those of a machine one after the other."""
    return tuple(
        case
        for machine in range(MACHINES)
        for case in _cases_of(machine, np.random.default_rng(machine))
    )


def _cases_of(machine: int, draw: np.random.Generator) -> Iterator[Case]:
    """Placements of groups of one size on one random machine."""
    pods, racks, gpus = int(draw.integers(1, 3)), 4, int(draw.choice([4, 8]))
    rack_over, pod_over = (float(x) for x in draw.choice([1.0, 2.0, 4.0, 7.0], 2))
    rack_uplink = gpus * NIC / rack_over
    simulated = Racks(
        pods, racks, gpus, NVLINK, NIC, rack_uplink, racks * gpus * NIC / pod_over
    )
    scored = _network(pods, racks, gpus, rack_over, pod_over)
    members = int(draw.choice([4, 8, 16]))
    for _ in range(PLACEMENTS):
        placed = _shuffled(draw, pods * racks * gpus, gpus)
        groups = placed.reshape(-1, members)
        fewest = {np.unique(row, return_counts=True)[1].min() for row in groups // gpus}
        yield Case(
            machine,
            len(fewest) > 1,
            float(ring_seconds(simulated, groups.tolist(), SIZE).max()),
            float(scored.gather(groups, SIZE).seconds.max()),
        )


def _shuffled(draw: np.random.Generator, count: int, gpus: int) -> np.ndarray:
    """GPUs in order, or rail after rail, with some of them exchanged at random."""
    placed = np.arange(count)
    if draw.random() < 0.3:
        placed = placed.reshape(-1, gpus).T.ravel()
    some = draw.choice(count, size=int(draw.integers(2, count + 1)), replace=False)
    placed[some] = placed[draw.permutation(some)]
    return placed


def errors() -> str:
    """The errors of all placements, and of those with groups that differ in NICs."""
    rows = []
    for what, chosen in (
        ("all", cases()),
        ("groups alike in NICs", [case for case in cases() if not case.uneven]),
        ("groups that differ", [case for case in cases() if case.uneven]),
    ):
        found = np.array([case.error for case in chosen])
        rms = float(np.sqrt((found**2).mean()))
        low, high = percent(found.min(), 1), percent(found.max(), 1)
        rows.append((what, f"{len(found)}", f"{low} to {high}", f"{rms:.1%}"))
    rows.append(("pairs over 2 % apart in order", "", f"{share_in_order():.1%}", ""))
    return table(("placements", "number", "error", "rms"), rows)


def share_in_order() -> float:
    """Pairs of placements on a machine that the model puts in the simulated order."""
    found = []
    for one, other in combinations(cases(), 2):
        least = min(one.simulated, other.simulated)
        apart = one.simulated - other.simulated
        if one.machine == other.machine and abs(apart) > APART * least:
            found.append((one.predicted - other.predicted) * apart > 0)
    return sum(found) / len(found)


def _network(
    pods: int, racks: int, gpus: int, rack_over: float, pod_over: float
) -> PlacedNetwork:
    """What the cost model makes of the machine, without latencies."""
    rows = (
        {"name": "rack", "size": gpus, "bandwidth": NVLINK, "scale_up": True},
        {"name": "pod", "bandwidth": NIC, "oversubscription": rack_over},
        {"name": "cluster", "bandwidth": NIC, "oversubscription": pod_over},
    )
    document = {
        "format": "placer/topology",
        "version": 1,
        "name": "pods",
        "tiers": [row | {"latency": 0.0} for row in rows],
        "layout": f"cluster:1 pod:{pods} rack:{racks}",
    }
    topology = parse_topology(json.dumps(document), "pods.json")
    return PlacedNetwork(Fabric.of(topology), np.arange(topology.num_gpus))
