"""Patched scripts run under the real Slurm, and ranks are where the plan has them."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from placer.emit import emit
from tests.clients import needs
from tests.clients.slurm_cluster import GPUS, Slurm, seats_by_rank, tasks
from tests.emit.test_patch import started

if TYPE_CHECKING:
    from pathlib import Path

# In no order of names: as text n10 comes first, by number n2.
_HOSTS = ("n9", "n10", "n2")
CONTIGUOUS = [(host, gpu) for host in _HOSTS for gpu in range(GPUS)]
_C10D = """\
#!/bin/bash
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
ARGS=(
    --nnodes 3 --nproc-per-node 4
    --rdzv-id 1 --rdzv-backend c10d
    --rdzv-endpoint "$head:{port}"
)
srun -n3 --ntasks-per-node=1 torchrun "${{ARGS[@]}}" --no-python {probe}
"""
_TASKS = """\
#!/bin/bash
export MASTER_ADDR=$(scontrol show hostnames | head -n 1)
srun -N3 -n12 -m block bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID {probe}'
"""


def run_patched(slurm: Slurm, folder: Path, text: str, name: str, line: int) -> str:
    """What the script prints in an allocation, once it is patched."""
    (folder / "train.sh").write_text(text)
    patch = emit(started(CONTIGUOUS, name, str(folder / "train.sh"), line), "patch")
    command = ["patch", "-p1", "-d", str(folder)]
    subprocess.run(command, input=patch, text=True, check=True)
    options = ("-N3", "-n12", "-w", "n[2,9,10]")
    return slurm.allocate("bash train.sh", *options, cwd=folder)


@pytest.mark.slow
def test_torchrun_c10d(slurm: Slurm, tmp_path: Path) -> None:
    """c10d would sort the hosts again; patched, every worker has the plan's rank."""
    needs.module("torch")
    here = {"PLACER_MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"}
    local = Slurm(slurm.folder, slurm.environ | here, slurm.port)
    text = _C10D.format(port=slurm.port, probe=slurm.probe)
    output = run_patched(local, tmp_path, text, "torchrun-c10d", 8)
    assert seats_by_rank(output) == CONTIGUOUS
    for task in tasks(output):
        assert _HOSTS[int(task["GROUP_RANK"])] == task["SLURMD_NODENAME"]


# What ms-swift's command line starts (swift/cli/main.py), and accelerate's.
_SWIFT = """\
#!/bin/bash
exec {python} -m torch.distributed.run --nproc_per_node $NPROC_PER_NODE \\
    --master_port $MASTER_PORT --nnodes $NNODES --node_rank $NODE_RANK \\
    --master_addr $MASTER_ADDR --no-python {probe}
"""
_ACCELERATE = """\
#!/bin/bash
while [ $# -gt 1 ]; do declare "${{1#--}}=$2"; shift; done
exec {python} -m torch.distributed.run --nnodes $num_machines \\
    --nproc_per_node $((num_processes / num_machines)) --node_rank $machine_rank \\
    --master_addr $main_process_ip --master_port $main_process_port --no-python {probe}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "agent", "line"),
    [
        ("swift", _SWIFT, "NODE_RANK=$SLURM_NODEID srun -N3 -n3 ./swift sft --x"),
        (
            "accelerate",
            _ACCELERATE,
            "srun -N3 -n3 ./accelerate launch --machine_rank $SLURM_NODEID "
            "--main_process_port {port} a.py",
        ),
    ],
)
def test_agents_of_frameworks(
    slurm: Slurm, tmp_path: Path, name: str, agent: str, line: str
) -> None:
    """ms-swift and accelerate start torchrun's agents with the plan's node ranks."""
    needs.module("torch")
    here = {"PLACER_MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"}
    here["PET_MASTER_PORT"] = str(slurm.port)
    local = Slurm(slurm.folder, slurm.environ | here, slurm.port)
    (tmp_path / name).write_text(agent.format(python=sys.executable, probe=slurm.probe))
    (tmp_path / name).chmod(0o755)
    text = f"#!/bin/bash\n{line.format(port=slurm.port)}\n"
    output = run_patched(local, tmp_path, text, name, 2)
    assert seats_by_rank(output) == CONTIGUOUS


@pytest.mark.slow
def test_one_task_a_rank(slurm: Slurm, tmp_path: Path) -> None:
    """A step in blocks by name becomes one in the plan's order, rank 0 its master."""
    text = _TASKS.format(probe=slurm.probe)
    output = run_patched(slurm, tmp_path, text, "slurm", 3)
    assert seats_by_rank(output) == CONTIGUOUS
    assert {task["MASTER_ADDR"] for task in tasks(output)} == {_HOSTS[0]}
