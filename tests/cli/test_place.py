"""``placer place`` from end to end: plans, options, rules and what is refused."""

import json
import os
import sys
from dataclasses import replace

import pytest

from placer import read_plan
from placer.base.errors import InputError
from placer.base.hostlist import expand
from placer.cli.searching import NOT_BUILT, NOT_EXACT, STALE
from placer.cost.hop_cost import HopCost
from placer.placement.baselines import baseline
from placer.placement.placement import Placement
from placer.solve.run.solution import Solution
from placer.solve.score import is_built, step_time
from tests.cli.small_job import MACHINE, WEIGHED, topology
from tests.commands import python, refusal, run
from tests.solve.annealing import test_added_move

JOB = WEIGHED
RULED = "rack:2 node:3 gpu:2"


def words(job, machine=MACHINE):
    return ("place", "-t", machine, "-j", job)


def place(job, *args, code=0):
    return run(*words(job), *args, code=code)


def test_writes_a_plan_that_holds(job, tmp_path):
    """With -o the plan is written, and passes its check; -q leaves both streams empty.

    With ``--format json`` and ``-o -`` the plan is printed and nothing else.
    """
    path = tmp_path / "plan.json"
    assert place(job, "-q", "-o", path).output == ""
    run("check", path, "-t", MACHINE, "-j", job)
    for args in (("--format", "json"), ("-o", "-")):
        plan = json.loads(place(job, *args).stdout)
        assert (plan["format"], plan["world_size"]) == ("placer/plan", 8)


def without_proof(problem, *_options):
    """A search that stops at the given order, half of it proved."""
    placement = baseline("given-order", problem.machine, problem.job)
    value = HopCost(problem.machine, problem.job).cost(placement.gpu_of_rank)
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


def test_gap_not_met_still_writes(job, tmp_path, monkeypatch):
    """A gap that is not reached gives exit 1, after the plan is written."""
    monkeypatch.setattr("placer.solve.orders.solve", without_proof)
    path = tmp_path / "plan.json"
    found = place(job, "--gap", "1%", "-o", path, code=1)
    assert "gap not met" in found.stderr
    assert read_plan(path).bound["gap"] == pytest.approx(0.5)
    place(job, "--gap", "0.6", "-o", path)


def test_a_plan_that_fails_its_check_is_never_shown(job, tmp_path, monkeypatch):
    """A wrong answer of the search is an internal error: exit 70 and no plan."""

    def wrong(problem, *_options):
        solution = without_proof(problem)
        gpus = solution.placement.gpu_of_rank[[0, 2, 1, 3, 4, 5, 6, 7]]
        swapped = Placement(gpus)
        value = HopCost(problem.machine, problem.job).cost(swapped.gpu_of_rank)
        return replace(solution, placement=swapped, value=value, lower_bound=0.0)

    monkeypatch.setattr("placer.solve.orders.solve", wrong)
    path = tmp_path / "plan.json"
    told = refusal(*words(job), "-o", path, "--effort", "normal", code=70)
    assert "internal error" in told
    assert "--debug" in told
    assert not path.exists()
    shown = place(job, "--debug", "--effort", "normal", code=70).stderr
    assert "Traceback" in shown


@pytest.mark.parametrize(
    "target", ["missing/plan.json", "."], ids=["no folder", "a folder"]
)
def test_unwritable_output_is_found_before_the_search(
    job, tmp_path, monkeypatch, target
):
    """A path that cannot be written ends with 4 before any time is spent."""

    def never(*_args, **_options):
        raise AssertionError("searched")

    monkeypatch.setattr("placer.solve.orders.solve", never)
    told = refusal(*words(job), "-o", tmp_path / target, code=4)
    assert "cannot be written" in told


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


def test_same_bytes_outside_solver():
    """Under two hash seeds there is one plan, but for its solver section."""
    texts = [
        python(
            "-c", TWICE, env=os.environ | {"PYTHONHASHSEED": seed}, check=True
        ).stdout
        for seed in ("0", "42")
    ]
    assert texts[0].count('"format": "placer/plan"') == 2
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "args",
    [
        ["--time-limit", "soon"],
        ["--require", "tp=nod"],
        ["--require", "tp=node", "--require", "tp=rack"],
        ["--objective", "time"],
        ["--hosts", ""],
        ["--hosts", "@/no/such/file"],
        ["--exclude", "r[1-2]-n[1-2]"],
    ],
    ids=" ".join,
)
def test_bad_options(job, tmp_path, args):
    """A bad option ends with 2, a message, no traceback and no output."""
    path = tmp_path / "plan.json"
    refusal(*words(job), "-o", path, *args)
    assert not path.exists()


@pytest.mark.parametrize("hosts", ["n[10,2,1,9]", "n[9,10,2]", "n10"])
def test_the_first_host_by_name_keeps_rank_0(tmp_path, hosts):
    """Slurm's order: n2 before n10, whatever order the hosts are given in."""
    path, job, machine = (tmp_path / name for name in ("p.json", "j.yaml", "m.yaml"))
    names = expand(hosts)
    job.write_text(JOB.replace("dp: 4", f"dp: {2 * len(names)}"))
    machine.write_text(topology("n[1-12]"))
    asked = (*words(job, str(machine)), "--hosts", hosts, "-q", "-o", path)
    run(*asked, "--first-host-first")
    first = min(names, key=lambda name: int(name[1:]))
    assert read_plan(path).host_of_rank[0] == first
    done = run(*asked, "--first-host-first", "--exclude", first, code=None)
    assert done.exit_code in (2, 3)


@pytest.mark.parametrize(
    ("options", "effort"),
    [
        ([], "measurable"),
        (["--time-limit", "60"], "measurable"),
        (["--time-limit", "60", "--effort", "full"], "full"),
        (["--effort", "12"], 12),
    ],
)
def test_a_time_limit_is_a_ceiling(job, monkeypatch, options, effort):
    """A time limit asks for no more effort than there is without one."""
    asked = []

    def stop(*, effort, **_others):
        asked.append(effort)
        raise InputError([])

    monkeypatch.setattr("placer.api.place.place", stop)
    place(job, *options, code=2)
    assert asked == [effort]


@pytest.mark.skipif(not is_built(), reason="the compiled part is not built")
def test_a_compiled_part_of_other_sources_is_not_used(job, monkeypatch):
    """It may lack what this Python calls; that it is stale, or not there, is told."""
    monkeypatch.setattr("placer.solve.score._kernel.sources", "of yesterday")
    assert not is_built()
    assert STALE in place(job).stderr
    monkeypatch.delattr("placer.solve.score._kernel.sources")
    assert STALE in place(job).stderr
    monkeypatch.setitem(sys.modules, "placer.solve.score._kernel", None)
    assert NOT_BUILT in place(job).stderr


@pytest.mark.skipif(not is_built(), reason="the compiled part is not built")
def test_a_compiled_cost_that_the_scorer_does_not_share_is_told(folder, monkeypatch):
    """Changes are then priced in full, which nobody should have to find out."""
    (folder / "machine.json").write_text(json.dumps(test_added_move.MACHINE))
    (folder / "job.json").write_text(json.dumps(test_added_move.jobs()[2]))
    asked = (*words("job.json", "machine.json"), "--effort", 0, "--time-limit", 600)
    assert NOT_EXACT not in run(*asked).stderr
    monkeypatch.setattr(step_time, "_agrees", lambda *_: False)
    assert NOT_EXACT in run(*asked).stderr


def test_rules_are_kept_recorded_and_checked(job, tmp_path):
    """Rules of flags are in the plan, and check enforces them without the flags."""
    path = tmp_path / "plan.json"
    flags = ("--pin", "0-1=r2-n[2-3]", "--avoid", "r1-n1", "--at-most", "rack=2")
    found = run(*words(job, RULED), *flags, "--spares", "rack=1", "-o", path)
    assert "kept: ranks 0-1 on r2-n[2-3]; at most 2 replicas in a rack;" in found.stdout
    assert "avoided: none of 1 node to avoid is used" in found.stdout
    plan = json.loads(path.read_text())
    assert plan["rules"]["pin"] == [{"ranks": "0-1", "nodes": "r2-n[2-3]"}]
    assert len(plan["rules"]["spare_nodes"]) == 2
    run("check", path, "-t", RULED, "-j", job)
    plan["rules"]["at_most"] = {"rack": 1}
    path.write_text(json.dumps(plan))
    found = run("check", path, "-t", RULED, "-j", job, code=1)
    assert "more than 1 replicas" in found.stdout


@pytest.mark.parametrize(
    ("flags", "code", "expected"),
    [
        (("--pin", "0"), 2, "is not a pin such as 0-3=n01"),
        (("--pin", "0=zz"), 2, '--pin: the topology has no host "zz"'),
        (("--pin", "9=r1-n1"), 2, "--pin: there is no rank 9"),
        (("--at-most", "rack=0"), 2, "is not a tier and a number such as rack=2"),
        (("--at-most", "hall=1"), 2, "--at-most: the topology rack:2 node:3 gpu:2 has"),
        (("--spares", "rack=1", "--spares", "rack=2"), 2, "rack has two numbers"),
        (("--spares", "rack=3"), 3, "this rule cannot be kept: 3 spare nodes in every"),
        (("--at-most", "rack=1"), 3, "it fits with at most 2 a rack"),
    ],
)
def test_bad_rules(job, flags, code, expected):
    """Bad flags exit with 2, rules that cannot be kept with 3 and a reason."""
    assert expected in refusal(*words(job, RULED), *flags, code=code)


@pytest.mark.parametrize(
    ("asked", "reason", "hint"),
    [
        (["place", "--spares", "rack=3"], "3 spare nodes in every rack", "it fits"),
        (["place", "--hosts", "r1-n[1-3]"], "needs 8 GPUs", "dp 3 would fit"),
        (["allocate", "--free", "r1-n1"], "needs 8 GPUs, 2 are free", "dp 1 would"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_json_says_what_is_infeasible(job, asked, reason, hint):
    """Exit code 3 with JSON: the verdict, the rule with its counts, what would fit."""
    given = (*asked, "-t", RULED, "-j", job)
    found = run(*given, "--format", "json", code=3)
    verdict = json.loads(found.stdout)["verdict"]
    assert (verdict["advice"], verdict["proved"]) == ("infeasible", True)
    assert reason in verdict["reason"]
    assert hint in verdict["hints"][0]
    assert verdict["text"].startswith("Infeasible: ")
    assert f"infeasible: {verdict['reason']}\n  hint: " in found.stderr
    refusal(*given, code=3)
