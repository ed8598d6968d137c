"""``placer launch``: one line in an sbatch script, for one step and no other."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from placer.placement.plan_file import write_plan
from tests.cli.small_job import HEAD
from tests.commands import run
from tests.emit.readback import CONTIGUOUS, FREE, plan_of
from tests.texts import file_text

ROOT = Path(__file__).resolve().parents[2]
JOB = HEAD + "parallelism: {tp: 2, dp: 2}\nweights: {tp: 10, dp: 1}\n"
PRINT = "import os, json, sys; print(json.dumps([dict(os.environ), sys.argv[1:]]))"


@pytest.fixture
def launch(folder, monkeypatch):
    """Runs the command in a folder of plans, and starts nothing.

    What it says, and what it becomes in the end, which is nothing if it refuses.
    """
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    (folder / "job.yaml").write_text(JOB)
    write_plan(plan_of(CONTIGUOUS), folder / "p.json")
    write_plan(plan_of(FREE), folder / "free.json")
    write_plan(plan_of([("n1", 0), ("n1", 1)]), folder / "one.json")
    started = []

    def start(name, command, environ):
        if name == "no-such-command":
            raise FileNotFoundError(2, "No such file or directory")
        started.append((command, environ))

    monkeypatch.setattr("os.execvpe", start)

    def launched(*words, code=0, **env):
        started.clear()
        found = run("launch", *words, code=code, env=env)
        assert found.stdout == ""
        command, environ = started[0] if started else ((), {})
        return SimpleNamespace(err=found.stderr, command=command, environ=environ)

    return launched


def process(folder, code, *words, **env):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *code, "launch", *words],
        cwd=folder,
        env=kept | {"PYTHONPATH": path} | env,
        capture_output=True,
        text=True,
    )


def test_plans_for_the_allocation(tmp_path):
    """The step gets the plan's host file, counts and addresses; arguments pass."""
    (tmp_path / "job.yaml").write_text(JOB)
    done = process(
        tmp_path,
        ["-m", "placer"],
        *("-t", "node:9 gpu:2", "-j", "job.yaml"),
        *(sys.executable, "-c", PRINT, "--its", "a b", "-q", "--plan"),
        SLURM_JOB_NODELIST="n[7,3]",
        SLURM_JOB_ID="42",
        SLURM_NTASKS_PER_NODE="8",
        MASTER_ADDR="stale",
    )
    assert done.returncode == 0, done.stderr
    environ, arguments = json.loads(done.stdout)
    plan = json.loads((tmp_path / "placer-42.json").read_text())
    hosts = (tmp_path / "placer-42.hosts").read_text().split()
    assert arguments == ["--its", "a b", "-q", "--plan"]
    assert sorted(plan["nodes"]) == ["n3", "n7"]
    assert hosts == [plan["nodes"][k] for k in plan["node_of_rank"]]
    expected = {
        "SLURM_HOSTFILE": str(tmp_path / "placer-42.hosts"),
        "SLURM_DISTRIBUTION": "arbitrary",
        "SLURM_NTASKS": "4",
        "SLURM_NNODES": "2",
        "MASTER_ADDR": hosts[0],
        "MASTER_PORT": "29500",
        "JAX_COORDINATOR_ADDRESS": f"{hosts[0]}:29500",
        "PLACER_PLAN": str(tmp_path / "placer-42.json"),
    }
    assert expected.items() <= environ.items()
    assert "SLURM_NTASKS_PER_NODE" not in environ
    assert "placer: 4 ranks on 2 hosts by placer-42.json" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-t", "node:9 gpu:2", "srun"], "Missing option '-j'"),
        (["--plan", "p.json"], "COMMAND"),
        (["--plan", "-", "srun"], "must be a file"),
        (["-t", "node:9 gpu:2", "-j", "job.yaml", "srun"], "SLURM_JOB_NODELIST"),
        (["--plan", "p.json", "no-such-command"], "no-such-command: No such file"),
        (["--plan", "free.json", "srun"], "formats that can:"),
        (["--plan", "p.json", "-j", "job.yaml", "srun"], "leaves nothing to -t"),
        (["--plan", "p.json", "--hosts", "n[1-3]", "srun"], "does not have the plan's"),
    ],
)
def test_errors(launch, words, message):
    """What cannot be launched ends with 2 and starts nothing."""
    step = launch(*words, code=2)
    assert message in step.err
    assert not step.command


def test_a_probe_step_that_fails_says_why(launch, tmp_path):
    """Without it nobody knows which option of Slurm is wrong."""
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\necho 'srun: error: Invalid account' >&2\nexit 1\n")
    srun.chmod(0o755)
    inside = {"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n1,n2"}
    inside["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    refused = launch("-j", "job.yaml", "srun", "train.py", code=2, **inside).err
    assert "ended with 1\n  hint: srun: error: Invalid account" in refused


def test_a_heterogeneous_job_is_planned_by_component(launch):
    """Slurm tells the hosts of the first where it tells those of a job."""
    words = ("-t", "node:2 gpu:2", "-j", "job.yaml")
    inside = {"SLURM_JOB_NODELIST": "n1,n2", "SLURM_HET_SIZE": "2"}
    assert "for its first component" in launch(*words, "srun", "a", **inside).err
    named = launch(*words, "--hosts", "n2,n1", "srun", "a", **inside)
    assert "component" not in named.err


@pytest.mark.parametrize(
    ("command", "options", "per_node"),
    [
        ("srun torchrun --nproc-per-node 2 train.py", [], True),
        ("srun ft_launcher --nproc-per-node 2 train.py", [], True),
        ("srun ray start --address=$HEAD --block", [], True),
        ("srun bash -c 'python -m verl.trainer.main_ppo a=b'", [], True),
        ("bash agents.sh", [], True),
        ("srun python train.py --launcher torchrun", [], False),
        ("srun python train.py", ["--per-node"], True),
        ("srun torchrun --nproc-per-node 2 train.py", ["--per-rank"], False),
    ],
)
def test_agents_are_one_a_node(launch, command, options, per_node):
    """As COMMAND, or a script that it names, starts them; an option says otherwise."""
    Path("agents.sh").write_text("srun torchrun train.py\n")
    words = shlex.split(command)
    step = launch("--plan", "p.json", *options, *words)
    hosts = [host for host, _ in CONTIGUOUS]
    expected = list(dict.fromkeys(hosts)) if per_node else hosts
    assert Path("p.hosts").read_text().split() == expected
    assert step.command == tuple(words)
    assert step.environ["SLURM_NTASKS"] == str(len(expected))
    assert ("one task each" in step.err) == per_node
    # Ray gives no order of tasks a meaning: what does is named.
    is_ray = "srun ray" in command or "verl" in command
    assert ("placer emit PLAN ray" in step.err) == is_ray


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        ("srun torchrun --rdzv-backend=c10d a.py", "sorts the hosts", "=static"),
        ("bash c10d.sh", "c10d.sh:2:1: --rdzv-backend", "--node-rank=$SLURM_PROCID"),
        ("torchrun --node_rank $SLURM_NODEID a.py", "counts hosts", "SLURM_PROCID"),
        ("bash swift.sh", "swift.sh:3:1: NODE_RANK", "SLURM_PROCID"),
        ("accelerate launch --machine_rank $SLURM_NODEID a.py", "--machine_", "PROCID"),
        ("srun -m block python a.py", "block deals tasks", "leave it out"),
        ("srun --distribution=cyclic:block sh x", "cyclic:block deals", "leave it out"),
    ],
)
def test_what_would_undo_the_plan_is_refused(launch, command, message, hint):
    """Before anything starts, with what to write instead; one host has no order."""
    Path("c10d.sh").write_text("B=c10d\nsrun torchrun --rdzv_backend $B a.py\n")
    swift = "#SBATCH -N 4\nexport NODE_RANK=$SLURM_NODEID\nswift pt --x\n"
    Path("swift.sh").write_text(swift)
    words = shlex.split(command)
    step = launch("--plan", "p.json", *words, code=2)
    assert message in step.err
    assert hint in step.err
    assert not step.command
    assert not Path("p.hosts").exists()
    assert message not in launch("--plan", "one.json", *words).err


def test_ft_launcher_is_told_its_place(launch):
    """A step a node, whose node rank comes before Slurm's blocks."""
    blocks = {"SLURM_TOPOLOGY_ADDR_PATTERN": "block.node", "SLURM_JOB_ID": "1"}
    words = ("ft_launcher", "--ft-segment=2", "train.py")
    step = launch("--plan", "p.json", *words, **blocks)
    srun, *command = step.command
    assert srun == "srun"
    Path("ft_launcher").write_text("#!/bin/sh\nenv\n")
    Path("ft_launcher").chmod(0o755)
    path = f"{Path.cwd()}{os.pathsep}{os.environ['PATH']}"
    environ = {**step.environ, "SLURM_PROCID": "2", "PATH": path}
    lines = subprocess.check_output(command, env=environ, text=True).splitlines()
    told = {"CROSS_SLURM_PROCID=2", "PET_NNODES=4", "PET_NPROC_PER_NODE=2"}
    assert told <= {*lines}
    refused = launch("--plan", "p.json", "srun", *words, code=2, **blocks).err
    assert "by Slurm's blocks again" in refused
    assert "CROSS_SLURM_PROCID=$SLURM_PROCID" in refused
    assert launch("--plan", "p.json", "srun", *words).command


@pytest.mark.parametrize(
    ("racks", "scale_up", "segment", "moved"),
    [
        ("abab", 2, "1", "2 of 4 hosts"),
        ("aaab", 2, "2", "2 of 4 hosts"),
        ("abab", 1, "2", ""),
        ("abab", 2, "", ""),
    ],
)
def test_segments_that_reorder_the_plan(launch, racks, scale_up, segment, moved):
    """Those that put NVLink domains together: a line says what that moves."""
    plan = plan_of(CONTIGUOUS)
    tiers = {"tiers": ["node", "rack", "cluster"], "scale_up": scale_up}
    racked = {"topology": {**plan.topology, **tiers}, "domains": {"rack": tuple(racks)}}
    write_plan(replace(plan, **racked), "racked.json")
    option = [f"--ft-segment={segment}"] if segment else []
    told = launch("--plan", "racked.json", "env", "ft_launcher", *option).err
    assert (f"{moved} get another rank" in told) == bool(moved), told


@pytest.mark.parametrize(
    "command",
    [
        "srun -m arbitrary python a.py -m block",
        "srun torchrun --rdzv-backend=placer --rdzv-conf=map=m.json a.py",
        "srun python a.py --rdzv-backend c10d",
    ],
)
def test_harmless_commands_pass(launch, command):
    """What only looks alike: options of the program, and the plan's own backend."""
    words = command.split()
    step = launch("-q", "--plan", "p.json", *words)
    assert (step.command, step.err) == (tuple(words), "")


_BARE = """\
import sys
for name in ("yaml", "ortools", "networkx"):
    sys.modules[name] = None
from placer.cli.main import main
main(prog_name="placer")
"""


def test_containers_need_click_and_numpy_alone(tmp_path):
    """A plan is made and run by, the exit code is the command's; YAML says it lacks."""
    write_plan(plan_of(CONTIGUOUS), tmp_path / "p.json")
    job = file_text("job", parallelism={"dp": 4}, weights={"dp": 1})
    (tmp_path / "job.json").write_text(job)
    (tmp_path / "job.yaml").write_text(JOB)
    machine = ["-t", "node:4 gpu:2", "--hosts", "n[1-2]"]
    for words, status, message in (
        (["--plan", "p.json", "sh", "-c", "exit 7"], 7, "on 4 hosts by p.json"),
        ([*machine, "-j", "job.json", "true"], 0, "4 ranks on 2 hosts"),
        ([*machine, "-j", "job.yaml", "true"], 2, "needs PyYAML"),
    ):
        done = process(tmp_path, ["-c", _BARE], *words)
        assert done.returncode == status, done.stderr
        assert message in done.stderr
    lines = (tmp_path / "p.hosts").read_text().split()
    assert lines == [host for host, _ in CONTIGUOUS]
