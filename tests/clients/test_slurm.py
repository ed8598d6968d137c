"""Slurm starts every rank where the plan has it, 64 ranks on 16 nodes.

Nodes are known by ``SLURMD_NODENAME``: they share a machine. Names are of mixed width,
and node order is never that of names.
"""

import os
import shlex
import sys
from random import Random

import pytest

from placer.emit import emit
from placer.placement.launcher_orders import slurm_key
from placer.placement.plan_file import read_plan
from tests.clients.processes import PLACER, REPORT, tell_domains, verdict
from tests.clients.slurm_cluster import (
    GPUS,
    ROOT,
    TOPOLOGY,
    Slurm,
    cluster,
    seats_by_rank,
    tasks,
)
from tests.emit.readback import counted, plan_of

_RANDOM = Random(64)
_NAMES = [f"n{k}" for k in range(1, 17)]
# Nodes in any order; ranks anywhere; besides, GPUs in any order.
CONTIGUOUS = [(h, k) for h in _RANDOM.sample(_NAMES, 16) for k in range(GPUS)]
SCATTERED = counted(_RANDOM.sample([host for host, _ in CONTIGUOUS], 64))
FREE = _RANDOM.sample(CONTIGUOUS, 64)
UNEQUAL = counted(["n10"] * 4 + ["n9", "n2", "n9"])
SMALL = counted([host for host in ("n9", "n16", "n2", "n10") for _ in range(GPUS)])
ON_SMALL = ("-N4", "-n16", "-w", "n[2,9,10,16]")

PLACER_COMMAND = shlex.join(PLACER)
REPORT_COMMAND = shlex.join(REPORT)
HOSTFILE = "SLURM_HOSTFILE=hosts.txt srun -m arbitrary"
MACHINE = "-t slurm:topology.conf --hardware meta-llama3-24k --gpus-per-node 4"


def own_ranks(output):
    """Node and local index of every task, by Slurm's own number of it."""
    found = tasks(output)
    assert [task["SLURM_PROCID"] for task in found] == [*map(str, range(len(found)))]
    assert {task["CUDA_VISIBLE_DEVICES"] for task in found} == {"0,1,2,3"}
    return [(task["SLURMD_NODENAME"], int(task["SLURM_LOCALID"])) for task in found]


def write_hosts(folder, seats):
    (folder / "hosts.txt").write_text("".join(f"{host}\n" for host, _ in seats))


def write_machine(folder, nodes):
    """The cluster's switches, and a job of a replica's stage a node."""
    (folder / "topology.conf").write_text(TOPOLOGY)
    job = (ROOT / "jobs" / "quickstart.yaml").read_text()
    (folder / "job.yaml").write_text(job.replace(" dp: 2,", f" dp: {nodes // 2},"))


def seats_of(plan):
    return list(zip(plan.host_of_rank, plan.gpu_of_rank.tolist(), strict=True))


@pytest.mark.parametrize(
    ("seats", "wanted"),
    [
        (CONTIGUOUS, ()),
        (SCATTERED, ()),
        # Nodes may have different numbers of ranks.
        (UNEQUAL, ("-N3", "-n7", "-w", "n[2,9,10]")),
    ],
)
def test_host_file(slurm, tmp_path, seats, wanted):
    """Line k is the node of task k, and local ids count up there."""
    emit(plan_of(seats), "slurm-hostfile", tmp_path / "hosts.txt")
    output = slurm.allocate(f"{HOSTFILE} {slurm.probe}", *wanted, cwd=tmp_path)
    assert own_ranks(output) == seats


@pytest.mark.parametrize("seats", [CONTIGUOUS, FREE, UNEQUAL])
def test_batch_script(slurm, tmp_path, seats):
    """Submitted as it is, it asks for the plan's nodes and gives each rank its GPU."""
    script = emit(plan_of(seats), "sbatch", tmp_path / "job.sbatch")
    odd = ("a b", "", "$(touch pwned)", "';touch pwned;'")
    output = slurm.submit(script, slurm.probe, *odd, cwd=tmp_path)
    assert not (tmp_path / "pwned").exists()
    assert seats_by_rank(output) == seats
    for task in tasks(output):
        assert task["RANK"] == task["SLURM_PROCID"]
        assert task["WORLD_SIZE"] == str(len(seats))
        on_node = sum(host == task["SLURMD_NODENAME"] for host, _ in seats)
        assert task["LOCAL_WORLD_SIZE"] == str(on_node)
        assert task["MASTER_ADDR"] == seats[0][0]
        assert task["SLURM_HOSTFILE"] == ""
        assert task["arguments"] == "4"


@pytest.mark.parametrize(
    ("format", "step", "differs"),
    [
        # Run by bash inside an allocation the batch script does the same.
        ("sbatch", "bash script.sh", ""),
        # Under a plain srun every process becomes the rank for its node and GPU.
        ("env", "srun bash script.sh", "SLURM_PROCID RANK"),
        # Beside a host file it gives every rank its GPU, whatever its local id is.
        ("gpu-wrapper", f"{HOSTFILE} bash script.sh", "SLURM_LOCALID LOCAL_RANK"),
    ],
)
def test_scripts(slurm, tmp_path, format, step, differs):
    """Each process has the plan's rank and GPU, though Slurm numbers it otherwise."""
    emit(plan_of(FREE), format, tmp_path / "script.sh")
    write_hosts(tmp_path, FREE)
    output = slurm.allocate(f"{step} {slurm.probe}", cwd=tmp_path)
    assert seats_by_rank(output) == FREE
    if differs:
        own, given = differs.split()
        assert any(task[own] != task[given] for task in tasks(output))
    if format == "env":
        assert {task["MASTER_ADDR"] for task in tasks(output)} == {FREE[0][0]}


def test_gpu_wrapper_stops_a_wrong_launch(slurm, tmp_path):
    """A rank on another node than in the plan stops, and the step fails."""
    emit(plan_of(SMALL), "gpu-wrapper", tmp_path / "gpu.sh")
    script = f"srun bash gpu.sh {slurm.probe} 2>&1 || echo status $?"
    output = slurm.allocate(script, *ON_SMALL, cwd=tmp_path)
    assert "rank 0 runs on n2, where the plan has ranks 8 9 10 11" in output
    assert "status 1" in output


NODEID = """\
export RANK=$((SLURM_NODEID * 4 + SLURM_LOCALID)) WORLD_SIZE=16
export LOCAL_RANK=$SLURM_LOCALID
exec "$@"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "seats", "habit"),
    [
        ("srun -l", SMALL, "slurm-block"),
        ("srun -m cyclic", SMALL, "cyclic"),
        (f"{HOSTFILE} bash nodeid.sh", SMALL, "slurm-nodeid"),
        (f"{HOSTFILE} -l", [(h, 3 - k) for h, k in SMALL], "gpus-by-local-rank"),
    ],
)
def test_verify_names_other_habits(slurm, tmp_path, step, seats, habit):
    """Each wrong launch that really happened has its name, and no other's."""
    write_hosts(tmp_path, SMALL)
    (tmp_path / "nodeid.sh").write_text(NODEID)
    output = slurm.allocate(f"{step} {REPORT_COMMAND}", *ON_SMALL, cwd=tmp_path)
    found = verdict(tmp_path, seats, output)
    assert not found["ok"]
    assert habit in found["habits"]
    assert set(found["habits"]) <= {habit, "gpus-reversed"}


@pytest.mark.slow
@pytest.mark.parametrize("tasks_by", ["--ntasks=64", "--ntasks-per-node=4"])
def test_launch_in_a_batch_script(slurm, tmp_path, tasks_by):
    """One line plans for the allocation and reorders its step, and no later one."""
    write_machine(tmp_path, 16)
    (tmp_path / "job.sh").write_text(f"""\
#!/bin/bash
#SBATCH --nodes=16 {tasks_by} --gpus-per-node={GPUS} --exclusive
set -e
{PLACER_COMMAND} launch {MACHINE} -j job.yaml -o plan.json srun {slurm.probe}
echo later
srun {slurm.probe}
""")
    output = slurm.submit("job.sh", cwd=tmp_path)
    first, later = output.split("later\n")
    plan = read_plan(tmp_path / "plan.json")
    by_name = [(host, k) for host in _NAMES for k in range(GPUS)]
    assert own_ranks(first) == seats_of(plan) != by_name
    assert {task["MASTER_ADDR"] for task in tasks(first)} == {plan.host_of_rank[0]}
    assert {task["PLACER_PLAN"] for task in tasks(first)} == {
        str(tmp_path / "plan.json")
    }
    assert own_ranks(later) == by_name


@pytest.mark.slow
@pytest.mark.parametrize("names", ["n[1-16]", "n[16,2,9,10]"])
def test_predicts_the_order_of_plain_srun(slurm, tmp_path, names):
    """Blocks fill the hosts as ``predict`` lists them; cyclic deals to them in turn."""
    nodes = 16 if "-" in names else 4
    write_machine(tmp_path, nodes)
    script = f"""\
{PLACER_COMMAND} predict {MACHINE} -j job.yaml --launcher slurm -q \\
  --hosts "$SLURM_JOB_NODELIST" -o before.json
srun {slurm.probe}
echo cyclic
srun -m cyclic {slurm.probe}
"""
    wanted = (f"-N{nodes}", f"-n{nodes * GPUS}", "-w", names)
    output = slurm.allocate(script, *wanted, cwd=tmp_path)
    block, cyclic = output.split("cyclic\n")
    plan = read_plan(tmp_path / "before.json")
    assert own_ranks(block) == seats_of(plan)
    hosts = list(dict.fromkeys(plan.host_of_rank))
    assert own_ranks(cyclic) == [(host, k) for k in range(GPUS) for host in hosts]


def test_order_of_odd_names():
    """Slurm sorts names of any shape as `slurm_key` does."""
    shapes = ("n{}", "n0{}", "n00{}", "r{}n7", "r2n{}", "n-{}", "n.{}a", "N{}", "x{}y")
    names = [shape.format(k) for shape in shapes for k in (1, 2, 9, 10, 11, 112)]
    chosen = Random(3).sample(names, 16)
    with cluster(",".join(chosen), topology="") as other:
        output = other.allocate(f"srun {other.probe}")
    hosts = list(dict.fromkeys(host for host, _ in own_ranks(output)))
    assert hosts == sorted(chosen, key=slurm_key)
    assert hosts != sorted(chosen)


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
    return [*read_plan(path).host_of_rank]


@pytest.mark.slow
def test_srun_gives_each_rank_the_host_of_the_plan(racks, tmp_path):
    """With no option, from what the nodes say and the degrees of the command."""
    script = f"{LAUNCH} srun {racks.probe} {DEGREES} 2>err || cat err"
    found = tasks(racks.allocate(script, cwd=tmp_path))
    hosts = hosts_of_plan(tmp_path)
    assert [task["SLURMD_NODENAME"] for task in found] == hosts
    racks = [int(host[1:]) % 4 for host in hosts]
    # Each replica, two stages of eight ranks, has a rack of its own.
    for replica in range(4):
        assert len({rack for k, rack in enumerate(racks) if k // 8 % 4 == replica}) == 1
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
    assert [host for host, _ in seats_by_rank(output)] == hosts_of_plan(tmp_path)


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
