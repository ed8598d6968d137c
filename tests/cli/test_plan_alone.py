"""A plan stands alone: what commands say of it, and of one whose inputs are damaged."""

import copy
import json
import random

import pytest

import placer
from tests.cli import small_job
from tests.commands import data, refusal, run

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
ROLES = """\
format: placer/workload
version: 1
name: roles
roles:
  - name: trainer
    job:
      {format: placer/job, version: 1, name: t, parallelism: {tp: 2, dp: 2},
       compute: {fixed_time: 1s}}
  - name: rollout
    instances: 2
    job:
      {format: placer/job, version: 1, name: r, parallelism: {tp: 2},
       groups: [{name: g, collective: all_reduce, bytes: 1MB, ranks: all}]}
transfers: [{from: trainer, to: rollout, bytes: 8GB, pattern: reshard}]
"""
PLACE = ("--hosts", "b[1-3],a[1,3-4]", "--exclude", "b3", "--require", "tp=node")
QUICK = ("--effort", "quick", "--time-limit", "1", "-q")
COMMANDS = {
    "check": ("check",),
    "score": ("score", "--explain"),
    "score json": ("score", "--format", "json"),
    "score baseline": ("score", "--baseline", "sorted-hosts"),
    "explain": ("explain", "--rank", "3", "--host", "a3"),
    "diff": ("diff", "baseline:sorted-hosts"),
    "diff json": ("diff", "launcher:slurm", "--format", "json"),
    "replace": ("replace", "--failed", "a3", "--added", "b4", "-q"),
    "replace json": ("replace", "--failed", "a3", "-q", "--format", "json"),
}
# These look at nothing but the plan.
PLAN_ONLY = {
    "emit": ("emit", "slurm-hostfile"),
    "request": ("emit", "slurm-request"),
    "map": ("draw",),
    "pipeline": ("draw", "pipeline"),
    "timeline": ("draw", "timeline"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A machine, a job, and a plan on a part of it, plain and compressed; and roles."""
    path = tmp_path_factory.mktemp("alone")
    (path / "machine.yaml").write_text(MACHINE)
    (path / "job.yaml").write_text(small_job.JOB)
    (path / "roles.yaml").write_text(ROLES)
    run("place", *inputs_in(path), *PLACE, *QUICK, "-o", path / "plan.json")
    roles = ("-t", path / "machine.yaml", "-j", path / "roles.yaml")
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
    """The same bytes with ``-t`` and ``-j`` as without, and of a compressed plan."""
    alone = run_on(folder / "plan.json", COMMANDS[name])
    assert alone.exit_code in (0, 1), alone.output
    assert alone.stdout
    given = run_on(folder / "plan.json", COMMANDS[name], *inputs_in(folder))
    packed = run_on(folder / "plan.json.gz", COMMANDS[name])
    assert lasting(given.stdout) == lasting(packed.stdout) == lasting(alone.stdout)
    assert given.exit_code == packed.exit_code == alone.exit_code


def test_a_plan_of_the_whole_machine(folder):
    """The same holds where the plan names no hosts: it keeps to naming none."""
    path = folder / "whole.json"
    run("place", *inputs_in(folder), "-q", "-o", path)
    for command in map(COMMANDS.get, ("score json", "diff json", "replace json")):
        alone, given = run_on(path, command), run_on(path, command, *inputs_in(folder))
        assert lasting(given.stdout) == lasting(alone.stdout)
        assert given.exit_code == alone.exit_code
    kept = data("replace", path, "--failed", "a3", "-q")["inputs"]
    assert (kept["hosts"], kept["exclude"]) == ("", "a3")


@pytest.mark.parametrize(
    "name", [name for name in (*COMMANDS, "emit", "map") if name != "diff json"]
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
    for name, command in COMMANDS.items():
        alone = run_on(path, command, code=2)
        assert "give the topology and the job it was made for: -t, -j" in alone.stderr
        assert run_on(path, command, *inputs_in(folder)).exit_code in (0, 1), name
    for command in (("emit", "slurm-hostfile"), ("draw",)):
        run_on(path, command, code=0)


VALUES = (
    *(None, True, -1, 0, 3, 0.5, 10**12, 1e300),
    *("", "x", "0", "node", "a[1-4]", "a[1-99999999]", "b[1", "placer/job"),
    *([], [0], ["a1"], [None], [[1]], {}, {"x": 1}, {"tp": "rack"}, {"rack": {}}),
)


def damaged(section, chance):
    """The section with a few values changed, dropped, added or moved."""
    found = copy.deepcopy(section)
    for _ in range(chance.randint(1, 3)):
        inside = {"section": found}
        key = "section"
        while isinstance(inside[key], dict | list) and inside[key]:
            if inside is not found and key != "section" and chance.random() < 0.2:
                break
            inside = inside[key]
            keys = [*inside] if isinstance(inside, dict) else [*range(len(inside))]
            key = chance.choice(keys)
        kind = chance.randrange(4)
        if kind == 0:
            del inside[key]
        elif kind == 1 and isinstance(inside, dict):
            inside[chance.choice(["hosts", "nodes", "tiers", "layout", "zero"])] = (
                copy.deepcopy(chance.choice(VALUES))
            )
        elif kind == 2 and isinstance(inside[key], str):
            at = chance.randrange(len(inside[key]) + 1)
            inside[key] = inside[key][:at] + chance.choice("19[],- x\x00")
        else:
            inside[key] = copy.deepcopy(chance.choice(VALUES))
        if not found:
            break
    return found


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
@pytest.mark.parametrize("count", [15, pytest.param(300, marks=pytest.mark.slow)])
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
