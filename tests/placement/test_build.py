"""From placement to plan and back."""

from dataclasses import replace

import numpy as np
import pytest

from placer.base.errors import InputError
from placer.job.orders import in_order
from placer.placement.build import placement_of_plan
from placer.placement.inputs import planned_job
from placer.testing.strategies import tiny, tiny_plan


def test_unknown_nodes_and_gpus():
    """Every node that the topology lacks is named, with the reason if there is one.

    Of a GPU that its node does not have, rank, node and count are named.
    """
    topology, _ = tiny()
    fewer = replace(
        topology.select(np.arange(6)), unavailable={"n006": "xid 79"}, name="half"
    )
    with pytest.raises(InputError) as caught:
        placement_of_plan(tiny_plan(), fewer)
    assert [str(problem) for problem in caught.value.problems] == [
        "nodes[6]: n006 must not be used: xid 79",
        "nodes[7]: topology half has no node n007",
    ]
    smaller = replace(topology, gpus_of_node=np.array([2, 2, 2, 1, 2, 2, 2, 2]))
    with pytest.raises(InputError, match=r"gpu_of_rank\[7\]: n003 has 1 GPU, none wi"):
        placement_of_plan(tiny_plan(), smaller)


OTHER = ("dp", "tp", "cp", "ep", "pp")


def test_other_jobs_are_refused():
    """A job of another size or another order is refused with both."""
    _, job = tiny()
    plan = tiny_plan()
    with pytest.raises(InputError, match=r"numbers ranks by .*, the job by dp-tp-"):
        planned_job(in_order(job, OTHER), plan)
    axes = replace(job.parallelism, dp=job.parallelism.dp * 2)
    with pytest.raises(InputError, match="the plan has 16 ranks, the job 32"):
        planned_job(replace(job, parallelism=axes), plan)
