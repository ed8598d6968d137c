"""``placer launch``: one line in an sbatch script, for one step and no other."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from placer.cli.main import main
from placer.placement.plan_file import write_plan
from tests.emit.readback import CONTIGUOUS, FREE, plan_of

ROOT = Path(__file__).resolve().parents[2]
JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, dp: 2}
weights: {tp: 10, dp: 1}
"""
PRINT = "import os, json, sys; print(json.dumps([dict(os.environ), sys.argv[1:]]))"


def run(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("SLURM")}
    code = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "placer", "launch", *arguments],
        cwd=folder,
        env=kept | {"PYTHONPATH": code} | env,
        capture_output=True,
        text=True,
    )


def test_plans_for_the_allocation(tmp_path: Path) -> None:
    """The step gets the plan's host file, counts and addresses; arguments pass."""
    (tmp_path / "job.yaml").write_text(JOB)
    done = run(
        tmp_path,
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


def test_runs_by_a_plan(tmp_path: Path) -> None:
    """A plan made before is used as it is; the exit code is the command's."""
    write_plan(plan_of(CONTIGUOUS), tmp_path / "p.json")
    done = run(tmp_path, "--plan", "p.json", "-q", "sh", "-c", "exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    lines = (tmp_path / "p.hosts").read_text().split()
    assert lines == [host for host, _ in CONTIGUOUS]


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_errors(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    """What cannot be launched ends with 2 and starts nothing."""

    def missing(command: str, *_args: object) -> None:
        assert command == "no-such-command"
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("os.execvpe", missing)
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    (tmp_path / "job.yaml").write_text(JOB)
    write_plan(plan_of(CONTIGUOUS), tmp_path / "p.json")
    write_plan(plan_of(FREE), tmp_path / "free.json")
    found = CliRunner().invoke(main, ["launch", *arguments])
    assert (found.exit_code, found.stdout) == (2, "")
    assert message in found.stderr


@pytest.mark.parametrize(
    ("command", "options", "per_node"),
    [
        ("srun torchrun --nproc-per-node 2 train.py", [], True),
        ("srun bash -c 'torchrun --node-rank=$SLURM_PROCID train.py'", [], True),
        ("srun python -m torch.distributed.run train.py", [], True),
        ("srun accelerate launch train.py", [], True),
        ("srun swift sft --model m", [], True),
        ("srun megatron rlhf --model m", [], True),
        ("srun ray start --address=$HEAD --block", [], True),
        ("srun bash -c 'python -m verl.trainer.main_ppo a=b'", [], True),
        ("srun ft_launcher --nproc-per-node 2 train.py", [], True),
        ("srun python sft.py --task swift sft", [], False),
        ("bash agents.sh", [], True),
        ("srun python train.py --launcher torchrun", [], False),
        ("srun python train.py", ["--per-node"], True),
        ("srun torchrun --nproc-per-node 2 train.py", ["--per-rank"], False),
    ],
)
def test_agents_are_one_a_node(
    tmp_path: Path, command: str, options: list[str], per_node: bool
) -> None:
    """As COMMAND, or a script that it names, starts them; an option says otherwise."""
    write_plan(plan_of(CONTIGUOUS), tmp_path / "p.json")
    (tmp_path / "agents.sh").write_text("env | grep SLURM_\nsrun torchrun train.py\n")
    (tmp_path / "srun").write_text("#!/bin/sh\nenv | grep SLURM_\n")
    (tmp_path / "srun").chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    words = shlex.split(command)
    done = run(tmp_path, "--plan", "p.json", *options, *words, PATH=path)
    assert done.returncode == 0, done.stderr
    hosts = [host for host, _ in CONTIGUOUS]
    expected = list(dict.fromkeys(hosts)) if per_node else hosts
    assert (tmp_path / "p.hosts").read_text().split() == expected
    assert f"SLURM_NTASKS={len(expected)}\n" in done.stdout
    assert ("one task each" in done.stderr) == per_node


@pytest.mark.parametrize(
    ("command", "message", "hint"),
    [
        ("srun torchrun --rdzv-backend=c10d a.py", "sorts the hosts", "=static"),
        ("bash c10d.sh", "c10d.sh:2:1: --rdzv-backend", "--node-rank=$SLURM_PROCID"),
        ("torchrun --node_rank $SLURM_NODEID a.py", "counts hosts", "SLURM_PROCID"),
        ("bash swift.sh", "swift.sh:3:1: NODE_RANK", "SLURM_PROCID"),
        ("accelerate launch --machine_rank $SLURM_NODEID a.py", "--machine_", "PROCID"),
        ("accelerate launch --rdzv_backend c10d a.py", "sorts the hosts", "static"),
        ("srun -m block python a.py", "block deals tasks", "leave it out"),
        ("srun --distribution=cyclic:block sh x", "cyclic:block deals", "leave it out"),
    ],
)
def test_what_would_undo_the_plan_is_refused(
    tmp_path: Path, command: str, message: str, hint: str
) -> None:
    """Before anything starts, with what to write instead; one host has no order."""
    (tmp_path / "c10d.sh").write_text("B=c10d\nsrun torchrun --rdzv_backend $B a.py\n")
    swift = "#SBATCH -N 4\nexport NODE_RANK=$SLURM_NODEID\nswift pt --x\n"
    (tmp_path / "swift.sh").write_text(swift)
    write_plan(plan_of(CONTIGUOUS), tmp_path / "p.json")
    write_plan(plan_of([("n1", 0), ("n1", 1)]), tmp_path / "one.json")
    words = shlex.split(command)
    done = run(tmp_path, "--plan", "p.json", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert hint in done.stderr
    assert not (tmp_path / "p.hosts").exists()
    done = run(tmp_path, "--plan", "one.json", *words, PATH=str(tmp_path))
    assert message not in done.stderr


def test_ft_launcher_is_told_its_place(tmp_path: Path) -> None:
    """A step a node, whose node rank comes before Slurm's blocks."""
    write_plan(plan_of(CONTIGUOUS), tmp_path / "p.json")
    show = 'SLURM_PROCID=2 "$@" && env'
    (tmp_path / "srun").write_text(f"#!/bin/sh\n{show}\n")
    (tmp_path / "ft_launcher").write_text("#!/bin/sh\nenv | grep PROCID=\n")
    for name in ("srun", "ft_launcher"):
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    blocks = {"SLURM_TOPOLOGY_ADDR_PATTERN": "block.node", "SLURM_JOB_ID": "1"}
    command = ("ft_launcher", "--ft-segment=2", "train.py")
    done = run(tmp_path, "--plan", "p.json", *command, PATH=path, **blocks)
    assert done.returncode == 0, done.stderr
    lines = {"CROSS_SLURM_PROCID=2", "PET_NNODES=4", "PET_NPROC_PER_NODE=2"}
    assert lines <= {*done.stdout.splitlines()}
    done = run(tmp_path, "--plan", "p.json", "srun", *command, PATH=path, **blocks)
    assert done.returncode == 2
    assert "by Slurm's blocks again" in done.stderr
    assert "CROSS_SLURM_PROCID=$SLURM_PROCID" in done.stderr
    done = run(tmp_path, "--plan", "p.json", "srun", *command, PATH=path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("racks", "scale_up", "segment", "moved"),
    [
        ("abab", 2, "1", "2 of 4 hosts"),
        ("aabb", 2, "2", ""),
        ("aaab", 2, "2", "2 of 4 hosts"),
        ("abab", 1, "2", ""),
        ("abab", 2, "", ""),
    ],
)
def test_segments_that_reorder_the_plan(
    tmp_path: Path, racks: str, scale_up: int, segment: str, moved: str
) -> None:
    """Those that put NVLink domains together: a line says what that moves."""
    topology = {"tiers": ["node", "rack", "cluster"], "scale_up": scale_up}
    plan = plan_of(CONTIGUOUS)
    plan = replace(
        plan, topology={**plan.topology, **topology}, domains={"rack": tuple(racks)}
    )
    write_plan(plan, tmp_path / "p.json")
    option = [f"--ft-segment={segment}"] if segment else []
    done = run(tmp_path, "--plan", "p.json", "env", "ft_launcher", *option)
    assert (f"{moved} get another rank" in done.stderr) == bool(moved), done.stderr


def test_ray_is_told_of(tmp_path: Path) -> None:
    """It gives no order of tasks a meaning: what does is named."""
    write_plan(plan_of(CONTIGUOUS), tmp_path / "p.json")
    command = ("srun", "ray", "start", "--head")
    done = run(tmp_path, "--plan", "p.json", *command, PATH=str(tmp_path))
    assert "placer emit PLAN ray" in done.stderr


def test_harmless_commands_pass(tmp_path: Path) -> None:
    """What only looks alike: options of the program, and the plan's own backend."""
    write_plan(plan_of(CONTIGUOUS), tmp_path / "p.json")
    for command in (
        "srun -m arbitrary python a.py -m block",
        "srun torchrun --rdzv-backend=placer --rdzv-conf=map=m.json a.py",
        "srun python a.py --rdzv-backend c10d",
    ):
        done = run(tmp_path, "--plan", "p.json", *command.split(), PATH=str(tmp_path))
        assert "srun: No such file" in done.stderr


_BARE = """\
import sys
for name in ("yaml", "ortools", "networkx"):
    sys.modules[name] = None
from placer.cli.main import main
main(prog_name="placer")
"""


def test_containers_need_click_and_numpy_alone(tmp_path: Path) -> None:
    """A plan is made, run by and verified; YAML alone says what it lacks."""
    write_plan(plan_of(CONTIGUOUS), tmp_path / "p.json")
    (tmp_path / "job.json").write_text(
        json.dumps(
            {
                "format": "placer/job",
                "version": 1,
                "name": "j",
                "parallelism": {"dp": 4},
                "weights": {"dp": 1},
            }
        )
    )
    (tmp_path / "job.yaml").write_text(JOB)
    machine = ["-t", "node:4 gpu:2", "--hosts", "n[1-2]"]
    for arguments, status, message in (
        (["launch", "--plan", "p.json", "true"], 0, "on 4 hosts by p.json"),
        (["launch", *machine, "-j", "job.json", "true"], 0, "4 ranks on 2 hosts"),
        (["launch", *machine, "-j", "job.yaml", "true"], 2, "needs PyYAML"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", _BARE, *arguments],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, done.stderr
        assert message in done.stderr
