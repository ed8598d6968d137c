"""Lines of a summary: memory, what was assumed, other orders and launchers."""

from dataclasses import replace

import pytest

import placer
from placer.report.assumed_text import assumed_lines
from placer.report.score_text import misfit
from placer.report.summary import advice_lines, summarise
from placer.testing.strategies import tiny_plan
from placer.topology.gpu_kinds import Gpu
from tests.texts import table

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


def test_the_chosen_order():
    """A plan that chose its order says which, and what numbers ranks so."""
    plan = tiny_plan()
    chosen = replace(plan, job={**plan.job, "auto_order": True})
    assert list(advice_lines(chosen)) == [f"rank order tp-cp-ep-pp-dp chosen ({FLAG})"]
    assert list(advice_lines(plan)) == []


def test_out_of_time():
    """A plan that a limit left without advice says so, unless its launch is free."""
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
    """The largest parts come first; small ones are left out."""
    assert misfit({"memory_bytes": NEEDS, "memory_limit_bytes": 80e9}) == (
        "does not fit: stage 3 needs 100 GB of memory, 20 GB more than a GPU has "
        "(activations 55 GB, parameters 20 GB, gradients 20 GB)"
    )


def test_nothing_is_said_of_what_fits_or_is_not_known():
    """Not of older scores, jobs without a model or machines without a limit either."""
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
