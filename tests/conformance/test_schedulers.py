"""What tables of cases do not tell: domains that fit best, unknown ones, orders."""

import pytest

from placer.base.errors import InfeasibleError
from placer.formats.machines.machine import read_topology
from tests.conformance.machines import Host, crossings, job, machine
from tests.readers.cases import node, nodes
from tests.solve.solving import solve


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_a_block_is_finished_before_the_next(size):
    """With interleaved numbering ranks go through one block, then through the other.

    Source: SchedMD/slurm, commit 284c3b95f0, testsuite/python/tests/test_150_3.py.
    """
    hosts = [Host(f"n{n}", 1, (f"b{2 - n % 2}",)) for n in range(1, 2 * size + 1)]
    topology = machine(("node", "block", "pair"), hosts)
    case = job(dp=2 * size)
    found = solve(topology, case)
    assert found.status == "optimal"
    assert crossings(topology, case, found.placement, "block")["dp"] == min(2, size)
    names = [topology.node_names[g] for g in found.placement.gpu_of_rank]
    odd_first = [f"n{n}" for n in range(1, 2 * size, 2)]
    even = [f"n{n}" for n in range(2, 2 * size + 1, 2)]
    assert names == odd_first + even


def listed(folder, **clique):
    """The machine of a list of nodes with one GPU, by their NVLink cliques."""
    items = [
        node(name, {"nvidia.com/gpu.clique": own} if own else {})
        for name, own in clique.items()
    ]
    for item in items:
        item["status"] = {"allocatable": {"nvidia.com/gpu": "1"}}
    path = folder / "nodes.json"
    path.write_text(nodes(*items))
    return read_topology(path, hardware="azure-gb200-mlperf-v6", note=lambda _: None)


def test_nodes_of_unknown_domain_are_not_chosen(tmp_path):
    """Two segments take A and B, although two nodes of no known domain come first.

    Where the second needs one of the unknown nodes, there is none: they are no guess.
    Source: NVIDIA-NeMo/RL, commit 7ea279abfb, nemo_rl/distributed/virtual_cluster.py.
    """
    known = {"a1": "A.1", "a2": "A.1", "b1": "B.1"}
    segments = job({"tp": "rack"}, tp=2, dp=2)
    topology = listed(tmp_path, u1="", u2="", **known, b2="B.1")
    found = solve(topology, segments, time_limit=20.0)
    used = topology.node_of_gpu[found.placement.gpu_of_rank]
    assert {topology.node_names[n] for n in used} == {"a1", "a2", "b1", "b2"}
    with pytest.raises(InfeasibleError, match="tp"):
        solve(listed(tmp_path, u1="", u2="", **known), segments, time_limit=20.0)
