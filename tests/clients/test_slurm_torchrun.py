"""torchrun inside Slurm: one agent a node, and ranks as the plan has them.

So do scripts that are patched.
"""

import shlex
import subprocess
from random import Random

import pytest

from placer.emit import emit
from tests.clients import needs
from tests.clients.processes import REPORT, verdict
from tests.clients.slurm_cluster import GPUS, Slurm, seats_by_rank, tasks
from tests.emit.readback import plan_of, started

_RANDOM = Random(16)
# In no order of names: as text n10 comes first, by number n2.
_HOSTS = ("n9", "n10", "n2")
CONTIGUOUS = [(host, gpu) for host in _HOSTS for gpu in range(GPUS)]
PERMUTED = [(h, gpu) for h in _HOSTS for gpu in _RANDOM.sample(range(GPUS), GPUS)]
FREE = _RANDOM.sample(CONTIGUOUS, 12)
ON_THREE = ("-N3", "-n12", "-w", "n[2,9,10]")
ONE_A_NODE = "srun -n3 --ntasks-per-node=1"
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


@pytest.fixture
def torchrun(slurm):
    """A cluster whose jobs run torchrun, all of it on this machine."""
    needs.module("torch")
    here = {
        "PLACER_MASTER_ADDR": "127.0.0.1",
        "OMP_NUM_THREADS": "1",
        "PLACER_SRUN_ARGS": "--unbuffered --kill-on-bad-exit=1",
    }
    ports = {"MASTER_PORT": str(slurm.port), "PET_MASTER_PORT": str(slurm.port)}
    return Slurm(slurm.folder, slurm.environ | here | ports, slurm.port)


@pytest.mark.slow
def test_batch_script(torchrun, tmp_path):
    """Submitted as it is, it gives every worker the plan's rank, node and GPU."""
    script = emit(plan_of(PERMUTED), "sbatch-torchrun", tmp_path / "job.sbatch")
    output = torchrun.submit(script, "--no-python", torchrun.probe, "a b", cwd=tmp_path)
    assert seats_by_rank(output) == PERMUTED
    for task in tasks(output):
        assert task["WORLD_SIZE"] == "12"
        assert _HOSTS[int(task["GROUP_RANK"])] == task["SLURMD_NODENAME"]
        assert task["SLURM_HOSTFILE"] == ""
        assert task["arguments"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format", "seats", "command"),
    [
        ("torchrun", PERMUTED, ["--no-python", *REPORT]),
        ("torchrun-wrapper", FREE, list(REPORT)),
    ],
)
def test_scripts_once_a_node(torchrun, tmp_path, format, seats, command):
    """Under a plain srun nodes find their ranks by name; `placer verify` agrees."""
    emit(plan_of(seats), format, tmp_path / "script.sh")
    step = f"{ONE_A_NODE} bash script.sh {shlex.join(command)}"
    output = torchrun.allocate(step, *ON_THREE, cwd=tmp_path)
    found = verdict(tmp_path, seats, output)
    assert found["ok"], found
    assert (found["reported"], found["unknown_gpus"]) == (12, 0)


def run_patched(slurm, folder, text, name, line):
    """What the script prints in an allocation, once it is patched."""
    (folder / "train.sh").write_text(text)
    patch = emit(started(CONTIGUOUS, name, str(folder / "train.sh"), line), "patch")
    command = ["patch", "-p1", "-d", str(folder)]
    subprocess.run(command, input=patch, text=True, check=True)
    return slurm.allocate("bash train.sh", *ON_THREE, cwd=folder)


@pytest.mark.slow
def test_torchrun_c10d(torchrun, tmp_path):
    """c10d would sort the hosts again; patched, every worker has the plan's rank."""
    text = _C10D.format(port=torchrun.port, probe=torchrun.probe)
    output = run_patched(torchrun, tmp_path, text, "torchrun-c10d", 8)
    assert seats_by_rank(output) == CONTIGUOUS
    for task in tasks(output):
        assert _HOSTS[int(task["GROUP_RANK"])] == task["SLURMD_NODENAME"]


@pytest.mark.slow
def test_one_task_a_rank(slurm, tmp_path):
    """A step in blocks by name becomes one in the plan's order, rank 0 its master."""
    text = _TASKS.format(probe=slurm.probe)
    output = run_patched(slurm, tmp_path, text, "slurm", 3)
    assert seats_by_rank(output) == CONTIGUOUS
    assert {task["MASTER_ADDR"] for task in tasks(output)} == {_HOSTS[0]}
