"""torchrun inside Slurm: one agent a node, and ranks as the plan has them."""

from __future__ import annotations

import shlex
import sys
from random import Random
from typing import TYPE_CHECKING

import pytest

from placer.emit import emit
from placer.placement.plan_file import write_plan
from tests.clients import needs
from tests.clients.processes import REPORT, verdict
from tests.clients.slurm_cluster import GPUS, ROOT, Slurm, seats_by_rank, tasks
from tests.emit.readback import Seat, plan_of

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.fixture
def torchrun(slurm: Slurm) -> Slurm:
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
def test_batch_script(torchrun: Slurm, tmp_path: Path) -> None:
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
def test_scripts_once_a_node(
    torchrun: Slurm, tmp_path: Path, format: str, seats: list[Seat], command: list[str]
) -> None:
    """Under a plain srun nodes find their ranks by name; `placer verify` agrees."""
    emit(plan_of(seats), format, tmp_path / "script.sh")
    step = f"{ONE_A_NODE} bash script.sh {shlex.join(command)}"
    output = torchrun.allocate(step, *ON_THREE, cwd=tmp_path)
    found = verdict(tmp_path, seats, output)
    assert found["ok"], found
    assert (found["reported"], found["unknown_gpus"]) == (12, 0)


@pytest.mark.slow
def test_placer_launch_starts_one_agent_a_node(torchrun: Slurm, tmp_path: Path) -> None:
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
def test_slurm_nodeid_is_caught(torchrun: Slurm, tmp_path: Path) -> None:
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
