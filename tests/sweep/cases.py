"""A small machine and job to sweep over."""

from placer import testing
from placer.sweep.point import Task
from placer.topology.read import read_topology


def job(dp=2, micro_batches=8):
    sizes = {"layers": 8, "hidden": 4096, "ffn": 14336, "heads": 32, "kv_heads": 8}
    return testing.job(
        tp=4,
        pp=2,
        dp=dp,
        order="tp-cp-ep-pp-dp",
        model=sizes | {"vocab": 32000},
        sequence=4096,
        micro_batches=micro_batches,
        compute={"micro_batch_time": "20ms", "fixed_time": "5ms"},
    )


def machine():
    """It has 64 GPUs."""
    return read_topology("block:2 rack:2 node:4 gpu:4")


def task():
    return Task(machine(), job())
