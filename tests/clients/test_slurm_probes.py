"""``placer launch`` without options on a real Slurm of sixteen nodes in two levels."""

import json
import os
import sys

import pytest

from tests.clients.processes import tell_domains
from tests.clients.slurm_cluster import GPUS, ROOT, Slurm, seats_by_rank, tasks

LAUNCH = f"{sys.executable} -m placer launch"
# What Megatron is told, and no more.
DEGREES = (
    "--tensor-model-parallel-size 4 --context-parallel-size 2 "
    "--pipeline-model-parallel-size 2"
)


@pytest.fixture
def racks(slurm, tmp_path):
    """The cluster with an nvidia-smi: node k is in NVLink domain k mod 4."""
    tell_domains(tmp_path, 4, "SLURMD_NODENAME", GPUS)
    path = f"{tmp_path}:{slurm.environ['PATH']}"
    code = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environ = slurm.environ | {"PATH": path, "PYTHONPATH": code}
    return Slurm(slurm.folder, environ, slurm.port)


def hosts_of_plan(folder):
    """The host of every rank of the plan that a launch left."""
    (path,) = folder.glob("placer-*.json")
    plan = json.loads(path.read_text())
    hosts = [plan["nodes"][node] for node in plan["node_of_rank"]]
    racks = [int(host[1:]) % 4 for host in hosts]
    # Each replica, two stages of eight ranks, has a rack of its own.
    for replica in range(4):
        own = {rack for k, rack in enumerate(racks) if k // 8 % 4 == replica}
        assert len(own) == 1
    return hosts


@pytest.mark.slow
def test_srun_gives_each_rank_the_host_of_the_plan(racks, tmp_path):
    """With no option, from what the nodes say and the degrees of the command."""
    script = f"{LAUNCH} srun {racks.probe} {DEGREES} 2>err || cat err"
    found = tasks(racks.allocate(script, cwd=tmp_path))
    hosts = hosts_of_plan(tmp_path)
    assert [task["SLURMD_NODENAME"] for task in found] == hosts
    said = (tmp_path / "err").read_text()
    assert "assumed: usual weights for tp 4 cp 2 pp 2" in said
    assert "4 racks" in said


@pytest.mark.slow
def test_torchrun_is_started_on_each_node(racks, tmp_path):
    """A torchrun in front is run by srun, with the plan's node ranks."""
    racks.environ |= {
        "PLACER_MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(racks.port),
        "OMP_NUM_THREADS": "1",
    }
    script = f"{LAUNCH} torchrun --no-python {racks.probe} {DEGREES}"
    output = racks.allocate(script, "-N4", "-n16", cwd=tmp_path)
    (path,) = tmp_path.glob("placer-*.json")
    plan = json.loads(path.read_text())
    hosts = [plan["nodes"][node] for node in plan["node_of_rank"]]
    assert [host for host, _ in seats_by_rank(output)] == hosts


@pytest.mark.slow
def test_rank_tells_what_the_plan_has(racks, tmp_path):
    """In a step `placer rank` prints the ranks of the task as assignments."""
    inner = f'eval "$({sys.executable} -m placer rank)"; echo got $RANK $SLURM_PROCID'
    script = f"{LAUNCH} -q srun bash -c '{inner} $MASTER_ADDR'"
    output = racks.allocate(script, "-N4", "-n16", cwd=tmp_path)
    rows = [line.split()[1:] for line in output.splitlines() if line.startswith("got ")]
    assert len(rows) == 16
    assert all(own == task for own, task, _ in rows)
    assert len({address for *_, address in rows}) == 1
