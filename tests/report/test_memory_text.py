"""Whether a job fits into a GPU, as people are told."""

from dataclasses import replace

import placer
from placer.report.score_text import misfit
from placer.report.summary import summarise
from placer.topology.gpu_kinds import Gpu

NEEDS = {
    "parameters": 20e9,
    "gradients": 20e9,
    "optimizer": 1e9,
    "activations": 55e9,
    "other": 4e9,
    "total": 100e9,
    "stage": 3,
}


def test_one_line_says_by_how_much_which_stage_and_why() -> None:
    """The largest parts come first; small ones are left out."""
    assert misfit({"memory_bytes": NEEDS, "memory_limit_bytes": 80e9}) == (
        "does not fit: stage 3 needs 100 GB of memory, 20 GB more than a GPU has "
        "(activations 55 GB, parameters 20 GB, gradients 20 GB)"
    )


def test_nothing_is_said_of_what_fits_or_is_not_known() -> None:
    """Not of older scores, jobs without a model or machines without a limit either."""
    assert misfit({"memory_bytes": NEEDS, "memory_limit_bytes": 100e9}) == ""
    assert misfit({"memory_bytes": NEEDS}) == ""
    assert misfit({"memory_limit_bytes": 80e9}) == misfit({}) == ""


def test_place_and_score_say_it_and_refuse_nothing() -> None:
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
