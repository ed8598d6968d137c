"""Generated machines are what was asked for, and the same every time."""

import numpy as np
import pytest

from benchmarks.generate import (
    KINDS,
    LARGEST,
    SMALLEST,
    Severity,
    generate,
    random_case,
)
from placer.job.edges import hop_edges


def test_nothing_missing() -> None:
    """Without severity racks are whole, blocks full, and the count is rounded up."""
    topology, job = generate(0, 1000, Severity())
    assert topology.gpus_of_node.tolist() == [72] * 14
    assert np.bincount(topology.domain_of_node[1]).tolist() == [8, 6]
    assert job.world_size <= topology.num_gpus


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_machine(kind: str) -> None:
    """The same arguments give the same machine and job, another seed another one."""
    severity = Severity(0.2, 0.2, 0.1)
    (one, job), (same, same_job), (other, _) = (
        generate(seed, 2000, severity, kind) for seed in (1, 1, 2)
    )
    assert one.node_names == same.node_names
    assert one.gpus_of_node.tolist() == same.gpus_of_node.tolist()
    assert job.parallelism == same_job.parallelism
    assert one.gpus_of_node.tolist() != other.gpus_of_node.tolist()


def test_shares_are_missing() -> None:
    """About the share that was asked for is missing; trays and hosts go whole."""
    racks, _ = generate(3, 72 * 400, Severity(trays=0.25))
    assert racks.num_gpus / (72 * 400) == pytest.approx(0.75, abs=0.03)
    assert not (racks.gpus_of_node % 4).any()
    hosts, _ = generate(3, 8 * 2000, Severity(nodes=0.25), "hosts")
    assert hosts.num_nodes / 2000 == pytest.approx(0.75, abs=0.03)
    gone, _ = generate(3, 72 * 400, Severity(racks=0.25))
    assert gone.num_nodes / 400 == pytest.approx(0.75, abs=0.1)


def test_too_much_missing() -> None:
    """A machine that holds no replica is refused."""
    with pytest.raises(ValueError, match="GPUs are left, too few for a replica"):
        generate(0, 72, Severity(trays=1.0))


@pytest.mark.parametrize("seed", range(12))
def test_random_cases(seed: int) -> None:
    """Random machines are of the sizes said and hold their job, which has edges."""
    topology, job = random_case(seed)
    assert topology.num_gpus <= LARGEST + 72
    assert 16 <= job.world_size <= topology.num_gpus
    assert int(topology.name.split("-")[1]) >= SMALLEST
    assert any(len(axis.edges) for axis in hop_edges(job))
    assert topology.domain_of_node[-1].max() == 0
    assert [len(names) for names in topology.domain_names] == [
        len(np.unique(row)) for row in topology.domain_of_node
    ]
