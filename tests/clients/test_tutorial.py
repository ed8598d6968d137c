"""The tutorial works on a cluster of the shape it describes, from top to bottom.

Megatron-LM is not there: what runs in its place says where its rank is.
"""

import pytest

from placer.placement.plan_file import read_plan
from tests.clients.slurm_cluster import cluster
from tests.doc_blocks import ROOT, commands, fences, run, with_placer

TUTORIAL = ROOT / "docs" / "tutorial.md"
# One write a rank, so that lines of tasks do not mix.
PRETRAIN = """\
import os, sys
seat = [os.environ[k] for k in ("RANK", "SLURMD_NODENAME", "LOCAL_RANK", "MASTER_ADDR")]
assert "--tensor-model-parallel-size" in sys.argv
os.write(1, (" ".join(["seat", *seat, os.environ["WORLD_SIZE"]]) + "\\n").encode())
"""


@pytest.mark.slow
def test_tutorial(tmp_path):
    """Every command ends and prints as shown.

    In training every rank is on the node and the GPU that the plan has for it.
    """
    folder = tmp_path / "reader"
    folder.mkdir()
    (folder / "pretrain_gpt.py").write_text(PRETRAIN)
    blocks = list(fences(TUTORIAL))
    shown = {fence.file: fence.body for fence in blocks}
    with cluster("h[01-40]", shown["topology.conf"], gpus=8) as slurm:
        environ = with_placer(tmp_path, slurm.environ)
        for fence in blocks:
            if fence.file:
                (folder / fence.file).write_text(fence.body)
            if fence.language == "console":
                for command in commands(fence.body):
                    run(command, folder, environ, fence.place)
    plan = read_plan(folder / "plan.json")
    first, size = plan.host_of_rank[0], str(plan.world_size)
    seats = zip(plan.host_of_rank, plan.gpu_of_rank.tolist(), strict=True)
    lines = (folder / "train.log").read_text().splitlines()
    assert sorted(lines) == sorted(
        f"seat {rank} {host} {gpu} {first} {size}"
        for rank, (host, gpu) in enumerate(seats)
    )
