"""``placer place`` from end to end."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from placer import read_job, read_plan, read_topology
from placer.base.hostlist import expand
from placer.cli.main import main
from placer.cost.hop_cost import hop_cost
from placer.placement.baselines import baseline
from placer.placement.check import violations
from placer.placement.placement import Placement
from placer.solve.run.solution import Solution

ROOT = Path(__file__).resolve().parents[2]
MACHINE = "rack:2 node:2 gpu:2"
JOB = """\
format: placer/job
version: 1
name: small
parallelism: {tp: 2, dp: 4}
weights: {tp: 10, dp: 1}
"""


def run(*args: object) -> Result:
    return CliRunner().invoke(main, list(map(str, args)))


def place(job: str, *args: object) -> Result:
    return run("place", "-t", MACHINE, "-j", job, *args)


def test_prints_a_summary(job: str) -> None:
    """By default stdout is a summary for people, with what was assumed."""
    found = place(job, "-v")
    assert found.exit_code == 0
    first, _, rest = found.stdout.partition("\n\n")
    assert first == place(job).stdout.rstrip()
    assert first.startswith("Keep your order: nothing to win\nyour order: given-order")
    assert f"\nsmall on {MACHINE}: 8 ranks\n" in rest
    assert "\nassumed: H100 hosts (--gpu NAME)" in first
    assert "Traceback" not in found.stderr


def test_writes_a_plan_that_holds(job: str, tmp_path: Path) -> None:
    """With -o the plan is written, and the independent checker passes it."""
    path = tmp_path / "plan.json"
    assert place(job, "-o", path).exit_code == 0
    assert violations(read_plan(path), read_topology(MACHINE), read_job(job)) == []
    assert run("check", path, "-t", MACHINE, "-j", job).exit_code == 0


def test_json_is_the_plan(job: str) -> None:
    """--format json and -o - print the plan and nothing else."""
    for args in (["--format", "json"], ["-o", "-"]):
        plan = json.loads(place(job, *args).stdout)
        assert plan["format"] == "placer/plan"
        assert plan["world_size"] == 8


def test_quiet_says_nothing(job: str, tmp_path: Path) -> None:
    """-q with a file leaves both streams empty."""
    found = place(job, "-q", "-o", tmp_path / "plan.json")
    assert (found.exit_code, found.output) == (0, "")


def test_hosts_and_exclude(job: str) -> None:
    """Only the hosts of the allocation are used, without the excluded ones."""
    args = ("--hosts", "r1-n1,r2-n[1-2],r1-n2", "--format", "json")
    assert set(json.loads(place(job, *args).stdout)["nodes"]) == {
        "r1-n1",
        "r2-n1",
        "r2-n2",
        "r1-n2",
    }
    found = place(job, *args, "--exclude", "r1-n2")
    assert found.exit_code == 3
    assert "infeasible: " in found.stderr


def test_a_rule_that_cannot_hold_is_infeasible(job: str, tmp_path: Path) -> None:
    """--require adds a rule; when it cannot hold, exit is 3 and no plan appears."""
    path = tmp_path / "plan.json"
    found = place(job, "--require", "dp=node", "-o", path)
    assert found.exit_code == 3
    assert found.stderr.splitlines()[-2].startswith("infeasible: ")
    assert found.stdout == ""
    assert not path.exists()


def test_added_rule_holds_and_is_recorded(job: str) -> None:
    """A rule of the command line is kept and stands in the plan's bound."""
    plan = json.loads(place(job, "--require", "tp=node", "--format", "json").stdout)
    assert plan["bound"]["require"] == {"tp": "node"}
    assert plan["score"]["crossings"]["tp"] == {"node": 4}


def test_gap_not_met_still_writes(
    job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gap that is not reached gives exit 1, after the plan is written."""
    monkeypatch.setattr("placer.solve.orders.solve", without_proof)
    path = tmp_path / "plan.json"
    found = place(job, "--gap", "1%", "-o", path)
    assert found.exit_code == 1
    assert "gap not met" in found.stderr
    assert read_plan(path).bound["gap"] == pytest.approx(0.5)
    assert place(job, "--gap", "0.6", "-o", path).exit_code == 0


def without_proof(problem, *_options):  # type: ignore[no-untyped-def]
    """A search that stops at the given order, half of it proved."""
    placement = baseline("given-order", problem.machine, problem.job)
    value = hop_cost(problem.machine, problem.job, placement)
    return Solution(
        placement=placement,
        objective="hop-cost",
        value=value,
        lower_bound=value / 2,
        argument="none",
        method="given-order",
        stop_reason="searched",
        wall_s=0.0,
        deterministic=True,
    )


def test_a_plan_that_fails_its_check_is_never_shown(
    job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong answer of the search is an internal error: exit 70 and no plan."""

    def wrong(problem, *_options):  # type: ignore[no-untyped-def]
        solution = without_proof(problem)
        gpus = solution.placement.gpu_of_rank[[0, 2, 1, 3, 4, 5, 6, 7]]
        swapped = Placement(gpus)
        value = hop_cost(problem.machine, problem.job, swapped)
        return replace(solution, placement=swapped, value=value, lower_bound=0.0)

    monkeypatch.setattr("placer.solve.orders.solve", wrong)
    path = tmp_path / "plan.json"
    found = place(job, "-o", path, "--effort", "normal")
    assert found.exit_code == 70
    assert "internal error" in found.stderr
    assert "--debug" in found.stderr
    assert "Traceback" not in found.stderr
    assert found.stdout == ""
    assert not path.exists()
    assert "Traceback" in place(job, "--debug", "--effort", "normal").stderr


@pytest.mark.parametrize(
    "target", ["missing/plan.json", "."], ids=["no folder", "a folder"]
)
def test_unwritable_output_is_found_before_the_search(
    job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """A path that cannot be written ends with 4 before any time is spent."""

    def never(*_args: object, **_options: object) -> None:
        raise AssertionError("searched")

    monkeypatch.setattr("placer.solve.orders.solve", never)
    found = place(job, "-o", tmp_path / target)
    assert found.exit_code == 4
    assert "cannot be written" in found.stderr
    assert found.stdout == ""


TWICE = """\
import contextlib, io, json
from placer.cli.main import main
for objective in ("time", "hop-cost"):
    args = ["-t", "dgx-h100-4x8", "-j", "quickstart", "--objective", objective]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main(["place", "-q", *args, "--format", "json"], standalone_mode=False)
    assert json.loads(out.getvalue())["solver"]["deterministic"] is True
    print(out.getvalue().partition('\\n  "solver": {')[0])
"""


def test_same_bytes_outside_solver() -> None:
    """Under two hash seeds there is one plan, but for its solver section."""
    texts = [
        subprocess.run(
            [sys.executable, "-c", TWICE],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "42")
    ]
    assert texts[0].count('"format": "placer/plan"') == 2
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "args",
    [
        ["--time-limit", "-1"],
        ["--time-limit", "nan"],
        ["--time-limit", "soon"],
        ["--gap", "nan"],
        ["--gap", "-0.1"],
        ["--gap", "2"],
        ["--gap", ""],
        ["--seed", "-1"],
        ["--seed", "99999999999"],
        ["--workers", "0"],
        ["--require", "tp"],
        ["--require", "=node"],
        ["--require", "tp=nod"],
        ["--require", "xp=node"],
        ["--require", "tp=node", "--require", "tp=rack"],
        ["--objective", "luck"],
        ["--objective", "time"],
        ["--format", "xml"],
        ["--hosts", ""],
        ["--hosts", "r1-n[1-2"],
        ["--hosts", "r9-n1"],
        ["--hosts", "r1-n1,r1-n1"],
        ["--hosts", "@/no/such/file"],
        ["--hosts", "$(reboot)"],
        ["--exclude", "r9-n1"],
        ["--exclude", "r[1-2]-n[1-2]"],
        ["surplus"],
    ],
    ids=" ".join,
)
def test_bad_options(job: str, tmp_path: Path, args: list[str]) -> None:
    """A bad option ends with 2, a message, no traceback and no output."""
    path = tmp_path / "plan.json"
    found = place(job, "-o", path, *args)
    assert found.exit_code == 2, found.output
    assert found.stderr.strip()
    assert "Traceback" not in found.output
    assert found.stdout == ""
    assert not path.exists()


@pytest.mark.parametrize("hosts", ["n[10,2,1,9]", "n[9,10,2]", "n10"])
def test_the_first_host_by_name_keeps_rank_0(tmp_path: Path, hosts: str) -> None:
    """Slurm's order: n2 before n10, whatever order the hosts are given in."""
    path, job = tmp_path / "plan.json", tmp_path / "job.yaml"
    names = expand(hosts)
    job.write_text(JOB.replace("dp: 4", f"dp: {2 * len(names)}"))
    machine = tmp_path / "machine.yaml"
    machine.write_text(
        "{format: placer/topology, version: 1, name: m, tiers: [{name: node, size: 4, "
        "bandwidth: 450GB/s, latency: 1us}, {name: cluster, bandwidth: 50GB/s, "
        'latency: 5us}], nodes: [{names: "n[1-12]"}]}'
    )
    args = ("-t", machine, "-j", job, "--hosts", hosts, "-q", "-o", path)
    done = run("place", *args, "--first-host-first")
    assert done.exit_code == 0, done.output
    first = min(names, key=lambda name: int(name[1:]))
    assert read_plan(path).host_of_rank[0] == first
    done = run("place", *args, "--first-host-first", "--exclude", first)
    assert done.exit_code in (2, 3)
