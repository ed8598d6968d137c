"""Patched scripts run under the real Slurm, and ranks are where the plan has them."""

from __future__ import annotations

import subprocess
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


@pytest.mark.slow
def test_one_task_a_rank(slurm: Slurm, tmp_path: Path) -> None:
    """A step in blocks by name becomes one in the plan's order."""
    text = _TASKS.format(probe=slurm.probe)
    output = run_patched(slurm, tmp_path, text, "slurm", 2)
    assert seats_by_rank(output) == CONTIGUOUS
