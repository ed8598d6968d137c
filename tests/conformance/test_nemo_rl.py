"""NeMo-RL's segments (NVIDIA-NeMo/RL, commit 7ea279abfb): the rules of its tests.

``tests/unit/distributed/test_topology_placement.py``. Whole segments of ``s`` nodes are
taken inside NVLink domains. A segment is a tp group of one-GPU nodes here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from placer.base.errors import InfeasibleError
from placer.formats.machines.machine import read_topology
from tests.conformance.machines import (
    crossings,
    domains_of,
    job,
    machine,
    ranks_in,
    varied,
    without,
)
from tests.solve.solving import solve

if TYPE_CHECKING:
    from placer.placement.placement import Placement
    from placer.topology.model import Topology

TIERS = ("node", "domain", "cluster")


def domains(sizes: dict[str, int], seed: int = 0) -> Topology:
    """Domains of one-GPU nodes."""
    hosts = domains_of({name: [1] * size for name, size in sizes.items()})
    return machine(TIERS, varied(hosts, seed))


def segments(topology: Topology, nodes: int, size: int) -> Placement:
    """``nodes`` nodes in segments of ``size``, each inside a domain."""
    case = job({"tp": "domain"}, tp=size, dp=nodes // size)
    found = solve(topology, case, time_limit=20.0)
    assert crossings(topology, case, found.placement, "domain")["tp"] == 0
    return found.placement


@pytest.mark.parametrize(
    ("sizes", "nodes", "size", "used"),
    [
        ({"A": 8, "B": 8}, 8, 8, [8]),
        ({"A": 8, "B": 8, "C": 8}, 16, 8, [8, 8]),
        ({"A": 6, "B": 8}, 8, 8, [8]),
        ({"A": 10}, 8, 8, [8]),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_whole_segments(sizes, nodes, size, used, seed):
    """A segment takes a domain that can hold it; what is over stays free."""
    topology = domains(sizes, seed)
    placement = segments(topology, nodes, size)
    assert sorted(ranks_in(topology, placement, "domain").values()) == used


@pytest.mark.parametrize(
    ("sizes", "nodes", "size"),
    [
        # One segment fits, two are wanted, though seven domains' nodes would do.
        ({"A": 6}, 8, 4),
        ({"A": 6, "B": 6}, 12, 4),
        (dict.fromkeys("ABCDE", 8), 48, 8),
    ],
)
def test_too_few_whole_segments(sizes, nodes, size):
    """Nodes that are over in each domain do not add up to a segment."""
    with pytest.raises(InfeasibleError, match=r"tp|the job needs"):
        segments(domains(sizes), nodes, size)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("sizes", "nodes", "used"),
    [([2, 18, 18], 36, 2), ([18, 2, 18], 36, 2), ([4, 10, 18, 10], 28, 2)],
)
def test_as_few_domains_as_can_be(sizes, nodes, used, seed):
    """Segments of 2 nodes fill two large domains; in rank order three would be used.

    Derived from ``nemo_rl/distributed/virtual_cluster.py``.
    """
    topology = domains({f"d{i}": size for i, size in enumerate(sizes)}, seed)
    case = job({"tp": "domain"}, tp=2, dp=nodes // 2)
    found = solve(topology, case, time_limit=20.0)
    assert len(ranks_in(topology, found.placement, "domain")) == used
    crossed = crossings(topology, case, found.placement, "domain")
    assert crossed == {"tp": 0, "dp": 2 * used}


def test_training_and_inference_share_five_domains():
    """24 nodes in segments of 8 take three domains; 16 by fours fill the other two."""
    topology = domains(dict.fromkeys("ABCDE", 8), seed=1)
    training = segments(topology, 24, 8)
    assert list(ranks_in(topology, training, "domain").values()) == [8, 8, 8]
    rest = without(topology, training)
    inference = segments(rest, 16, 4)
    assert list(ranks_in(rest, inference, "domain").values()) == [8, 8]
    assert rest.num_nodes == 16


def node_list(cliques: dict[str, str | None]) -> str:
    """A Kubernetes node list whose nodes say their NVLink clique, or do not."""
    items = [
        {
            "metadata": {
                "name": name,
                "labels": {"nvidia.com/gpu.clique": clique} if clique else {},
            },
            "status": {"allocatable": {"nvidia.com/gpu": "1"}},
        }
        for name, clique in cliques.items()
    ]
    return json.dumps({"apiVersion": "v1", "kind": "NodeList", "items": items})


UNKNOWN_FIRST = {"u1": None, "u2": None, "a1": "A.1", "a2": "A.1", "b1": "B.1"}


@pytest.fixture
def listed(tmp_path):
    """The machine of a node list."""

    def read(cliques):
        path = tmp_path / "nodes.json"
        path.write_text(node_list(cliques))
        return read_topology(
            path, hardware="azure-gb200-mlperf-v6", note=lambda _: None
        )

    return read


def rack_segments(topology: Topology, nodes: int) -> list[str]:
    """The nodes of segments of two inside racks."""
    case = job({"tp": "rack"}, tp=2, dp=nodes // 2)
    found = solve(topology, case, time_limit=20.0)
    used = np.unique(topology.node_of_gpu[found.placement.gpu_of_rank])
    return [topology.node_names[node] for node in used.tolist()]


def test_nodes_of_unknown_domain_are_not_chosen(listed):
    """Two segments take A and B, although two nodes of no known domain come first."""
    machine_read = listed(UNKNOWN_FIRST | {"b2": "B.1"})
    assert rack_segments(machine_read, 4) == ["a1", "a2", "b1", "b2"]


def test_unknown_domains_are_no_guess(listed):
    """Where a second segment needs the unknown nodes, there is none."""
    with pytest.raises(InfeasibleError, match="tp"):
        rack_segments(listed(UNKNOWN_FIRST), 4)
