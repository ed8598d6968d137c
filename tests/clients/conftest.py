import pytest

from tests.clients.slurm_cluster import cluster


@pytest.fixture(scope="session")
def slurm():
    """A Slurm cluster of 16 nodes of 4 GPUs: one for all tests of a process."""
    with cluster() as running:
        yield running
