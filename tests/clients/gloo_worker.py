"""One rank of a gloo job: shows its seat, and whose GPUs its groups are.

    python gloo_worker.py SIZES [PLAN]

SIZES is JSON, axis -> size, outermost first. With PLAN the rank is that of
placer.launch, else the launcher's. It prints what the shell probe does, and `sums RANK
JSON`: for every axis the sums of ranks and of bits of GPUs over the rank's group.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from placer.launch import this_process, torch_arguments
from placer.launch.process import report_line
from placer.placement.plan_file import read_plan


def main():
    sizes = json.loads(sys.argv[1])
    arguments = torch_arguments(read_plan(sys.argv[2])) if len(sys.argv) > 2 else {}
    dist.init_process_group("gloo", **arguments)
    mesh = init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))
    host, gpu = os.environ["PLACER_HOST"], int(os.environ["LOCAL_RANK"])
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        gpu = int(visible.split(",")[gpu])
    # A bit of its own for every GPU: a sum of them is a set.
    bit = 1 << 8 * int(host[1:]) + gpu
    sums = {}
    for axis in sizes:
        mine = torch.tensor([dist.get_rank(), bit])
        dist.all_reduce(mine, group=mesh.get_group(axis))
        sums[axis] = mine.tolist()
    lines = (
        f"seat {os.environ['RANK']} {host} {gpu} {os.environ.get('GROUP_RANK')}",
        f"sums {dist.get_rank()} {json.dumps(sums)}",
        report_line(this_process()),
    )
    sys.stdout.write("\n".join(lines) + "\n")
    dist.destroy_process_group()


main()
