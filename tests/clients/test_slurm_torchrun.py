"""torchrun inside Slurm: one agent a node, and ranks as the plan has them.

So do scripts that are patched.
"""

import shlex
import subprocess
import sys
from random import Random

import pytest

from placer.emit import emit
from placer.placement.plan_file import write_plan
from tests.clients import needs
from tests.clients.processes import REPORT, verdict
from tests.clients.slurm_cluster import GPUS, ROOT, Slurm, seats_by_rank, tasks
from tests.emit.readback import plan_of
from tests.emit.test_patch import started

_RANDOM = Random(16)
# In no order of names: as text n10 comes first, by number n2.
_HOSTS = ("n9", "n10", "n2")
CONTIGUOUS = [(host, gpu) for host in _HOSTS for gpu in range(GPUS)]
PERMUTED = [(h, gpu) for h in _HOSTS for gpu in _RANDOM.sample(range(GPUS), GPUS)]
FREE = _RANDOM.sample(CONTIGUOUS, 12)
ON_THREE = ("-N3", "-n12", "-w", "n[2,9,10]")
ONE_A_NODE = "srun -n3 --ntasks-per-node=1"
# The mistake: Slurm counts nodes by name, whatever the host file says.
NODEID = """\
export PET_NNODES=3 PET_NPROC_PER_NODE=4 PET_NODE_RANK=$SLURM_NODEID
export PET_MASTER_ADDR=$PLACER_MASTER_ADDR
exec torchrun "$@"
"""


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


@pytest.mark.slow
def test_placer_launch_starts_one_agent_a_node(torchrun, tmp_path):
    """With nothing but the node rank of the task, each agent has the plan's ranks."""
    write_plan(plan_of(CONTIGUOUS), tmp_path / "plan.json")
    agent = (
        "torchrun --nnodes=3 --nproc-per-node=4 --node-rank=$SLURM_PROCID "
        "--master-addr=$PLACER_MASTER_ADDR --master-port=$MASTER_PORT"
    )
    command = f"{agent} --no-python {torchrun.probe}"
    launch = f"{sys.executable} -m placer launch --plan plan.json"
    script = f"export PYTHONPATH={ROOT}; {launch} srun bash -c '{command}'"
    output = torchrun.allocate(script, *ON_THREE, cwd=tmp_path)
    assert seats_by_rank(output) == CONTIGUOUS


@pytest.mark.slow
def test_slurm_nodeid_is_caught(torchrun, tmp_path):
    """SLURM_NODEID undoes the host file; `placer verify` fails and says so."""
    (tmp_path / "hosts.txt").write_text("".join(f"{host}\n" for host in _HOSTS))
    (tmp_path / "nodeid.sh").write_text(NODEID)
    step = f"{ONE_A_NODE} -m arbitrary bash nodeid.sh --no-python {shlex.join(REPORT)}"
    script = f"SLURM_HOSTFILE=hosts.txt {step}"
    output = torchrun.allocate(script, *ON_THREE, cwd=tmp_path)
    found = verdict(tmp_path, CONTIGUOUS, output)
    assert not found["ok"]
    assert found["habits"] == ["slurm-nodeid"]
    assert {(row["rank"], row["host"]) for row in found["wrong"]} >= {(0, "n2")}


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
def test_agents_of_frameworks(torchrun, tmp_path, name, agent, line):
    """ms-swift and accelerate start torchrun's agents with the plan's node ranks."""
    text = agent.format(python=sys.executable, probe=torchrun.probe)
    (tmp_path / name).write_text(text)
    (tmp_path / name).chmod(0o755)
    text = f"#!/bin/bash\n{line.format(port=torchrun.port)}\n"
    output = run_patched(torchrun, tmp_path, text, name, 2)
    assert seats_by_rank(output) == CONTIGUOUS


@pytest.mark.slow
def test_one_task_a_rank(slurm, tmp_path):
    """A step in blocks by name becomes one in the plan's order, rank 0 its master."""
    text = _TASKS.format(probe=slurm.probe)
    output = run_patched(slurm, tmp_path, text, "slurm", 3)
    assert seats_by_rank(output) == CONTIGUOUS
    assert {task["MASTER_ADDR"] for task in tasks(output)} == {_HOSTS[0]}
