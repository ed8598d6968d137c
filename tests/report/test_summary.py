"""The terminal summary: narrow, complete, and right about what it says.

Its last lines tell of memory, what was assumed, other orders and launchers.
"""

import shlex
from dataclasses import replace

import pytest

import placer
from placer.report.assumed_text import assumed_lines
from placer.report.columns import PLAIN, Look, seen
from placer.report.next_text import next_lines
from placer.report.score_text import misfit
from placer.report.summary import advice_lines, summarise
from placer.testing.strategies import tiny_plan
from placer.topology.gpu_kinds import Gpu
from tests.texts import table


def told(plan, look=PLAIN):
    """All that ``-v`` shows."""
    return summarise(plan, look, in_full=True)


@pytest.fixture(scope="module")
def plan():
    topology = placer.read_topology("dgx-h100-4x8")
    return placer.place(topology, placer.read_job("quickstart")).plan


def test_parts_and_gains(plan):
    """Gains are in seconds, percent and GPU hours, by axis; broken rules are said.

    What only the launcher cannot number is not called a broken rule.
    """
    score = plan.score | {
        "step_time_s": 1.0,
        "exposed_s": {"tp": 0.1, "pp": 0.02, "dp": 0.005},
        "exposed_scale_out_s": 0.025,
    }
    usual = {
        "step_time_s": 1.009,
        "exposed_s": {"tp": 0.1, "pp": 0.0291, "dp": 0.0049},
        "violates": ["a rule", "another"],
    }
    text = told(replace(plan, score=score, baselines={"given-order": usual}))
    words = " ".join(text.split())
    # 9 ms of 1.009 s; the same share of the 24 hours of 16 GPUs.
    row = "given-order * 1.009 s +9 ms +0.89% +3.4 pp +9.1 dp -0.1"
    assert row in words
    assert "* breaks rules of the job" in words
    assert "exposed cross-node 25 ms 2.5%" in words
    launch = "1 of 4 nodes does not hold consecutive ranks: the first"
    for violates, note in (
        ([launch], "* cannot be launched: the job's launcher"),
        ([launch, "a rule"], "* breaks rules of the job, or cannot"),
    ):
        other = {"given-order": usual | {"violates": violates}}
        assert note in told(replace(plan, score=score, baselines=other))


def test_plan_of_few_words(plan):
    """A plan without score, bound, baselines and solver still has a summary."""
    bare = replace(
        plan,
        topology={"name": "machine", "sha256": ""},
        job={"name": "job", "sha256": "", "order": "tp-cp-ep-pp-dp"},
        score={},
        bound={},
        baselines={},
        advice={},
        solver={},
    )
    assert told(bare).splitlines() == [
        "job on machine: 16 ranks",
        "numbered tp-cp-ep-pp-dp",
        "2 nodes (8 GPUs each)",
    ]


@pytest.mark.parametrize(
    ("job", "objective"),
    [("quickstart", "time"), ("quickstart", "hop-cost"), ("dlrm-all-to-all", "time")],
)
def test_fits_any_width(job, objective):
    """No line is wider than the terminal, with colours and bars and without."""
    plan = placer.place("dgx-h100-4x8", job, objective=objective).plan
    for width in range(40, 161):
        for look in (Look(width), Look(width, colour=True, bars=True)):
            lines = told(plan, look).splitlines()
            assert max(map(seen, lines)) <= width
            lines = list(next_lines(plan, "plan.json", width))
            assert max(map(len, lines)) <= width


def test_bars_are_the_shares(plan):
    """Every part of the step has a bar of its share, where the one before ends."""
    score = plan.score | {
        "step_time_s": 1.0,
        "compute_s": 0.5,
        "bubble_s": 0.25,
        "fixed_s": 0.0,
        "exposed_s": {"tp": 0.25},
    }
    text = told(replace(plan, score=score), Look(120, bars=True))
    drawn = {
        line.split("  ")[1].strip(): line[line.index("%") + 1 :]
        for line in text.splitlines()
        if "\u2588" in line
    }
    full, room = "\u2588", 50
    assert drawn["compute"].strip() == full * (room // 2)
    bubble, exposed = drawn["pipeline bubble"], drawn["exposed tp"]
    # 12.5 of 50 columns, in eighths of one.
    assert bubble.strip() == exposed.strip() == full * 12 + "\u258c"
    assert bubble.index(full) - drawn["compute"].index(full) == 25
    assert exposed.index(full) - bubble.index(full) == 12


def test_a_slower_group_is_named(plan):
    """The group that others wait for, as `explain --group` wants it; none of equals."""
    worst = plan.score["worst_group"]
    alike = worst | {"axis": "pp", "group": 3, "groups": 8, "as_slow": 8}
    score = plan.score | {"worst_group": alike}
    assert "slowest" not in told(replace(plan, score=score))
    assert "  placer explain p.json --rank 0" in next_lines(
        replace(plan, score=score), "p.json", 80
    )
    score = plan.score | {"worst_group": alike | {"as_slow": 2}}
    slower = replace(plan, score=score)
    text = " ".join(told(slower).split())
    assert "slowest of 8 pp groups: pp:3, one of 2 as slow, with" in text
    assert "  placer explain p.json --group pp:3" in next_lines(slower, "p.json", 80)


@pytest.mark.parametrize(*table("report/summary.yaml", "next_follows_the_launcher"))
def test_next_follows_the_launcher(plan, launcher, scheduler, first, said):
    """What the job's own launcher takes, and the line where it is called."""
    started = {"name": launcher, "source": "a.sh", "line": 7}
    job = {**plan.inputs["job"], "launcher": started}
    machine = {**plan.inputs["topology"]} | (
        {"scheduler": scheduler} if scheduler else {}
    )
    inputs = {**plan.inputs, "topology": machine, "job": job}
    verdict = {**plan.verdict, "ranks_moved": 4}
    moved = replace(plan, inputs=inputs, verdict=verdict)
    lines = [*next_lines(moved, "p.json", 80)]
    assert lines[1].startswith("  # ")
    assert said in lines[1]
    command = next(line for line in lines if "placer" in line.split()[:1])
    assert command == f"  placer emit p.json {first}"
    if "jobset" in first:  # pods need a manifest where nothing moves, too
        kept = replace(moved, verdict={**verdict, "ranks_moved": 0})
        assert command in next_lines(kept, "p.json", 80)


@pytest.mark.parametrize("path", ["a b.json", "$(x).json", "it's.json", "-o.json"])
def test_next_commands_can_be_typed(plan, path):
    """Whatever the plan is called, a shell reads back the words that were meant."""
    for width in (40, 80):
        typed = "\n".join(next_lines(plan, path, width))
        commands = typed.replace("\\\n", " ").splitlines()[1:]
        for command in commands[::2]:
            assert shlex.split(command)[2].removeprefix("./") == path
            assert not shlex.split(command)[2].startswith("-")


def test_a_path_that_does_not_fit_is_not_broken(plan):
    """Commands with a word wider than the terminal, or unprintable, are left out."""
    for path in ("p" * 60, "a\nb"):
        lines = list(next_lines(plan, path, 40))
        assert lines == ["next", "  placer emit --list"]


FLAG = "Megatron-LM: --use-tp-pp-dp-mapping"


def text_of(objective="time", **advice):
    plan = tiny_plan(bound={"objective": objective}, advice=advice)
    return " ".join(line.strip() for line in advice_lines(plan))


@pytest.mark.parametrize(*table("report/summary.yaml", "what_is_known"))
def test_what_is_known(advice, expected):
    """Proof, silence and vain attempts are told apart."""
    assert expected in text_of(**advice)


def test_savings():
    """What changes, what it saves in the objective's unit, and what does it."""
    order = {"change": "order", "to": "tp-cp-ep-pp-dp", "how": FLAG, "saves": 0.041}
    free = {"change": "launcher", "to": "free", "saves": 0.003}
    found = text_of(status="searched", tried=[], savings=[order, free])
    assert f"order tp-cp-ep-pp-dp would save 41 ms a step ({FLAG})" in found
    assert "a free launcher would save 3 ms a step (launcher: {ranks: free})" in found
    found = text_of(
        "hop-cost", status="searched", tried=[], savings=[order | {"saves": 1280.0}]
    )
    assert "would lower the hop cost by 1,280" in found


def test_other_advice():
    """A chosen order and what numbers ranks so; no time left, but of a free launch."""
    plan = tiny_plan()
    chosen = replace(plan, job={**plan.job, "auto_order": True})
    assert list(advice_lines(chosen)) == [f"rank order tp-cp-ep-pp-dp chosen ({FLAG})"]
    assert list(advice_lines(plan)) == []
    plan = tiny_plan(solver={"deterministic": False})
    (line,) = advice_lines(plan)
    assert line.endswith("not computed, no time was left")
    free = replace(plan, job={**plan.job, "launcher": "free"})
    assert list(advice_lines(free)) == []


UPLINKS = {"key": "oversubscription", "value": 1, "why": "w", "option": "--o spine=N"}
RATE = {
    "key": "compute.tflops_per_gpu",
    "value": 1750.0,
    "why": "35 % of the fp8 peak",
    "option": "--tflops RATE",
}


def key(name):
    return {"key": name, "value": 1, "why": "w", "option": f"--set job.{name}=VALUE"}


def line(assumed, what_if=()):
    return "\n".join(assumed_lines(assumed, what_if, 1000))


def at(value, share, name="oversubscription"):
    return {"key": name, "value": value, "saved_share": share}


def test_each_has_its_option():
    """One line for all; of the job's keys the first few, in words nothing is lost."""
    found = line([UPLINKS, RATE, *map(key, "abcde")])
    assert found == (
        "assumed: uplinks not oversubscribed (--o spine=N); "
        "1,750 TFLOP/s a GPU, 35 % of the fp8 peak (--tflops RATE); "
        "a 1 (--set job.a=VALUE); b 1 (--set job.b=VALUE); c 1 (--set job.c=VALUE); "
        "2 more keys of the job (-v)"
    )
    assert line([]) == ""


def test_what_the_verdict_rests_on_has_its_own_line():
    """Savings, costs and nothing at all, each at its value."""
    for shares, words in (
        ((0.038, 0.151), "at 2:1 this plan saves 3.8 %, at 4:1 15.1 %"),
        ((0.002, -0.1), "at 2:1 this plan saves 0.2 %, at 4:1 it costs 10 %"),
        ((0.0, 0.1), "at 2:1 this plan saves nothing, at 4:1 it saves 10 %"),
        ((0.0, 0.0), "at 2:1 and 4:1 this plan saves nothing"),
    ):
        found = line([UPLINKS, RATE], [at(2, shares[0]), at(4, shares[1])])
        told = f"assumed: uplinks not oversubscribed; {words} (--o spine=N)"
        assert found.splitlines()[1] == told
    tried = [at(1250, 0.001, RATE["key"]), at(2400, 0.02, RATE["key"])]
    assert "at 1,250 TFLOP/s this plan saves 0.1 %, at 2,400 TFLOP/s 2 %" in line(
        [RATE], tried
    )


NEEDS = {
    "parameters": 20e9,
    "gradients": 20e9,
    "optimizer": 1e9,
    "activations": 55e9,
    "other": 4e9,
    "total": 100e9,
    "stage": 3,
}


def test_one_line_says_by_how_much_which_stage_and_why():
    """The largest parts come first; small ones are left out.

    Nothing is said of what fits, nor where a model or a limit is not known.
    """
    assert misfit({"memory_bytes": NEEDS, "memory_limit_bytes": 80e9}) == (
        "does not fit: stage 3 needs 100 GB of memory, 20 GB more than a GPU has "
        "(activations 55 GB, parameters 20 GB, gradients 20 GB)"
    )
    assert misfit({"memory_bytes": NEEDS, "memory_limit_bytes": 100e9}) == ""
    assert misfit({"memory_bytes": NEEDS}) == ""
    assert misfit({"memory_limit_bytes": 80e9}) == misfit({}) == ""


def test_place_and_score_say_it_and_refuse_nothing():
    """The plan is made all the same, carries the memory and passes its check."""
    machine = placer.read_topology("dgx-h100-4x8")
    small = replace(machine, gpu=Gpu("toy", 20e9))
    fits, lacks = (placer.place(m, "quickstart") for m in (machine, small))
    assert "does not fit" not in summarise(fits.plan, in_full=True)
    said = summarise(lacks.plan, in_full=True)
    assert said.count("does not fit: stage 0 needs 22.51 GB") == 1
    assert "does not fit: 22.51 GB of memory needed" in lacks.summary()
    assert lacks.score["memory_limit_bytes"] == 20e9
    assert lacks.score["memory_bytes"] == fits.score["memory_bytes"]
    assert lacks.plan.node_of_rank.tolist() == fits.plan.node_of_rank.tolist()
    placer.check(lacks.plan)
