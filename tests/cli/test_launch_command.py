"""``placer launch``: one line in an sbatch script, for one step and no other."""

import json
import os
import subprocess
import sys
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
    return subprocess.run(
        [sys.executable, "-m", "placer", "launch", *arguments],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)} | env,
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
