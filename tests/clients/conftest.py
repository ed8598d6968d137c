from collections.abc import Iterator

import pytest

from tests.clients.slurm_cluster import Slurm, cluster


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    """A Slurm cluster of 16 nodes of 4 GPUs: one for all tests of a process."""
    with cluster() as running:
        yield running
