"""A plan stands alone: what commands say of it, and of one whose inputs are damaged."""

import json
import random

import pytest

import placer
from tests.cli import small_job
from tests.commands import refusal, run
from tests.mutants import mutated_values
from tests.texts import FOLDER

MACHINE = """\
format: placer/topology
version: 1
name: patchy
tiers:
  - {name: node, size: 2, bandwidth: 450GB/s, latency: 1us, scale_up: true}
  - {name: rack, bandwidth: 50GB/s, latency: 4us}
  - {name: cluster, bandwidth: 50GB/s, latency: 8us, oversubscription: 2}
nodes:
  - {names: "a[1-4]", rack: a}
  - {names: "b[1-4]", rack: b}
unavailable: {a2: "xid 79"}
scheduler: slurm
"""
PLACE = ("--hosts", "b[1-3],a[1,3-4]", "--exclude", "b3", "--require", "tp=node")
QUICK = ("--effort", "quick", "--time-limit", "1", "-q")
COMMANDS = {
    "check": ("check",),
    "score": ("score", "--explain"),
    "score json": ("score", "--format", "json"),
    "explain": ("explain", "--rank", "3", "--host", "a3"),
    "diff": ("diff", "baseline:sorted-hosts"),
    "diff json": ("diff", "launcher:slurm", "--format", "json"),
    "pipeline": ("draw", "pipeline"),
    "replace": ("replace", "--failed", "a3", "--added", "b4", "-q"),
    "replace json": ("replace", "--failed", "a3", "-q", "--format", "json"),
}
# These look at nothing but the plan.
PLAN_ONLY = {
    "emit": ("emit", "slurm-hostfile"),
    "request": ("emit", "slurm-request"),
    "map": ("draw",),
    "timeline": ("draw", "timeline"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A machine, a job, and a plan on a part of it, plain and compressed; and roles."""
    path = tmp_path_factory.mktemp("alone")
    (path / "machine.yaml").write_text(MACHINE)
    (path / "job.yaml").write_text(small_job.JOB)
    run("place", *inputs_in(path), *PLACE, *QUICK, "-o", path / "plan.json")
    work = FOLDER / "jobs/workload-roles.yaml"
    roles = ("-t", path / "machine.yaml", "-j", work)
    run("place", *roles, *QUICK, "-o", path / "roles.json")
    plan = placer.read_plan(path / "plan.json")
    placer.write_plan(plan, path / "plan.json.gz")
    return path


def inputs_in(folder):
    return ["-t", str(folder / "machine.yaml"), "-j", str(folder / "job.yaml")]


def run_on(plan, command, *more, code=None):
    """The command on the plan, which comes first but in ``diff``."""
    name, *options = command
    words = [*options, plan] if name == "diff" else [plan, *options]
    return run(name, *words, *more, code=code)


def lasting(text):
    """What is printed without the seconds that a search took."""
    return "\n".join(line for line in text.split("\n") if '"wall_s"' not in line)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_plan_says_what_its_inputs_say(folder, name):
    """A plan, compressed or not, gives the bytes that ``-t`` and ``-j`` give."""
    alone = run_on(folder / "plan.json", COMMANDS[name])
    assert alone.exit_code in (0, 1), alone.output
    assert alone.stdout
    given = run_on(folder / "plan.json", COMMANDS[name], *inputs_in(folder))
    packed = run_on(folder / "plan.json.gz", COMMANDS[name])
    assert lasting(given.stdout) == lasting(packed.stdout) == lasting(alone.stdout)
    assert given.exit_code == packed.exit_code == alone.exit_code


def test_a_plan_of_the_whole_machine(folder):
    """One that names no hosts keeps to naming none, with its inputs and without."""
    path = folder / "whole.json"
    run("place", *inputs_in(folder), "-q", "-o", path)
    alone, given = (
        run_on(path, COMMANDS["replace json"], *more, code=0).stdout
        for more in ((), inputs_in(folder))
    )
    assert lasting(given) == lasting(alone)
    kept = json.loads(alone)["inputs"]
    assert (kept["hosts"], kept["exclude"]) == ("", "a3")


@pytest.mark.parametrize(
    "name", ["check", "score", "diff", "explain", "replace", "emit", "map"]
)
def test_others_are_refused_unless_forced(folder, name):
    """A machine with another digest ends with 2; ``--force`` takes it."""
    command = (COMMANDS | PLAN_ONLY)[name]
    other = folder / "faster.yaml"
    other.write_text(MACHINE.replace("oversubscription: 2", "oversubscription: 1"))
    refused = run_on(folder / "plan.json", command, "-t", str(other), code=2)
    assert "another topology" in refused.stderr
    forced = run_on(folder / "plan.json", command, "-t", str(other), "--force")
    assert forced.exit_code in (0, 1), forced.output


def test_nothing_leaves_the_allocation(folder):
    """Hosts outside it, or excluded, serve no repair, baseline or prediction."""
    plan = folder / "plan.json"
    told = refusal("replace", plan, "--failed", "a1,b1", "-q", code=3)
    assert "left out: 1 x excluded, 2 x failed, 1 x outside" in told
    assert "add hosts from outside the allocation: --added" in told
    for command in (("diff", "baseline:random"), ("diff", "launcher:slurm")):
        found = json.loads(run_on(plan, command, "--format", "json").stdout)
        gained = {*found["nodes_lost"]} | {*found["nodes_gained"]}
        assert not gained & {"b3", "b4", "a2"}


def test_an_older_plan_needs_its_inputs(folder):
    """Without inputs and verdict a plan reads as before: with ``-t`` and ``-j``."""
    older = json.loads((folder / "plan.json").read_text())
    del older["inputs"], older["verdict"]
    path = folder / "older.json"
    path.write_text(json.dumps(older))
    for name in ("check", "score", "explain", "diff", "pipeline", "replace"):
        alone = run_on(path, COMMANDS[name], code=2)
        assert "give the topology and the job it was made for: -t, -j" in alone.stderr
        given = run_on(path, COMMANDS[name], *inputs_in(folder))
        assert given.exit_code in (0, 1), name
    for command in (("emit", "slurm-hostfile"), ("draw",)):
        run_on(path, command, code=0)


def damaged(section, chance):
    """The section with a few values changed, dropped, doubled or moved."""
    return json.loads(mutated_values(json.dumps(section), chance))


def passes_check(path, plan):
    """Whether the check passes a damaged plan; its inputs are then what it names."""
    path.write_text(json.dumps(plan))
    found = run_on(path, ("check",))
    assert found.exit_code in range(4), found.output
    if found.exit_code:
        return False
    for key, read in (("topology", placer.read_topology), ("job", placer.read_job)):
        part = path.with_name(f"{key}.json")
        part.write_text(json.dumps(plan["inputs"][key]))
        assert read(part).sha256 == plan[key]["sha256"]
    return True


@pytest.mark.parametrize("name", ["plan.json", "roles.json"])
@pytest.mark.parametrize("count", [9, pytest.param(300, marks=pytest.mark.slow)])
def test_damaged_plans_give_clean_errors(folder, name, count):
    """An answer or an error in words, wherever the plan was edited.

    ``check`` passes no input that is another than the plan names.
    """
    plan = json.loads((folder / name).read_text())
    path = folder / "damaged.json"
    chance = random.Random(f"{name} {count}")
    pages = ("report",), ("diff", "baseline:random", "--format", "html")
    commands = [*COMMANDS.values(), *PLAN_ONLY.values(), *pages, ("emit", "json")]
    passed = 0
    for number in range(2 * count):
        if number % 2:
            wrong = damaged(plan, chance)
            passes_check(path, wrong)
        else:
            wrong = plan | {"inputs": damaged(plan["inputs"], chance)}
            passed += passes_check(path, wrong)
        found = run_on(path, commands[number % len(commands)])
        assert found.exit_code in range(5), (wrong, found.output)
        assert found.exit_code == 0 or found.output.strip()
    assert passed < count / 2
