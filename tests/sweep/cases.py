"""A small machine and job to sweep over."""

from placer.job.read import read_job
from placer.sweep.point import Task
from placer.topology.read import read_topology

MACHINE = "block:2 rack:2 node:4 gpu:4"  # 64 GPUs
JOB = """\
format: placer/job
version: 1
name: small
parallelism: {{tp: 4, pp: 2, dp: {dp}, order: tp-cp-ep-pp-dp}}
model: {{layers: 8, hidden: 4096, ffn: 14336, heads: 32, kv_heads: 8, vocab: 32000}}
sequence: 4096
micro_batches: {micro_batches}
compute: {{micro_batch_time: 20ms, fixed_time: 5ms}}
"""


def job(folder, dp=2, micro_batches=8):
    path = folder / f"job-{dp}-{micro_batches}.yaml"
    path.write_text(JOB.format(dp=dp, micro_batches=micro_batches))
    return read_job(path)


def machine():
    return read_topology(MACHINE)


def task(folder):
    return Task(machine(), job(folder))
