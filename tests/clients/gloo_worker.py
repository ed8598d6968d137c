"""One rank of a gloo job: shows its seat, and the seats of all as collectives see them.

    python gloo_worker.py [PLAN]

With PLAN the rank is that of placer.launch, else the launcher's. It prints what the
shell probe does, and `gathered JSON`: host and GPU of every rank of the group.
"""

import json
import os
import sys

import torch.distributed as dist

from placer.launch import this_process, torch_arguments
from placer.launch.process import report_line
from placer.placement.plan_file import read_plan


def main():
    arguments = torch_arguments(read_plan(sys.argv[1])) if len(sys.argv) > 1 else {}
    dist.init_process_group("gloo", **arguments)
    host, gpu = os.environ["PLACER_HOST"], int(os.environ["LOCAL_RANK"])
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        gpu = int(visible.split(",")[gpu])
    seats = [None] * dist.get_world_size()
    dist.all_gather_object(seats, (host, gpu))
    lines = (
        f"seat {os.environ['RANK']} {host} {gpu} {os.environ.get('GROUP_RANK')}",
        f"gathered {json.dumps(seats)}",
        report_line(this_process()),
    )
    sys.stdout.write("\n".join(lines) + "\n")
    dist.destroy_process_group()


main()
