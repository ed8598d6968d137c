"""Small jobs and plans of pages and pictures."""

from dataclasses import replace

import numpy as np

from placer import testing
from placer.api.predict import scored_plan
from placer.placement.inputs import Inputs
from placer.placement.placement import Placement
from placer.topology.read import read_topology


def small_job(layers=4, heads=4, **keys):
    """A job of a toy of a model and steps of 10 ms a micro-batch."""
    model = {"hidden": 64, "ffn": 128, "kv_heads": heads, "vocab": 512}
    return testing.job(
        "small",
        model={"layers": layers, "heads": heads, **model},
        sequence=128,
        micro_batches=4,
        compute={"micro_batch_time": "10ms"},
        **keys,
    )


def inputs(dp=6):
    """Eight racks in two blocks, 64 GPUs; tp 2, cp 2, pp 2, dp 6 on 48 of them."""
    machine = read_topology("block:2 rack:4 node:2 gpu:4")
    return machine, small_job(tp=2, cp=2, pp=2, dp=dp)


def plan_on(topology, job, gpus):
    """The plan of a job whose ranks are on these GPUs."""
    return scored_plan(Inputs(topology, job), Placement(gpus), "by hand")


def two_plans():
    """A job in order, and with all but 16 ranks somewhere else."""
    topology, job = inputs()
    shuffled = np.random.default_rng(3).permutation(topology.num_gpus)[:48]
    gpus = np.concatenate([np.arange(16), np.setdiff1d(shuffled, np.arange(16))])
    rest = np.setdiff1d(np.arange(topology.num_gpus), gpus)
    moved = np.concatenate([gpus, rest])[:48]
    return plan_on(topology, job, np.arange(48)), plan_on(topology, job, moved), job


def bare(plan):
    """Only what a plan must say."""
    keep = ("name", "sha256", "order")
    return replace(
        plan,
        topology={k: v for k, v in plan.topology.items() if k in keep},
        job={k: v for k, v in plan.job.items() if k in keep},
        domains={},
    )
