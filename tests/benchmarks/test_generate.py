"""Generated machines are what was asked for, and the same every time."""

import pytest

from benchmarks.generate import (
    KINDS,
    Severity,
    generate,
)


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
