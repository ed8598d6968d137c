"""What placer and Calculon are told is the same, and published choices are read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.calculon import CASES, Both, choices, job_of, main, place, row
from benchmarks.choices import Judged, behind, held_out, runs
from placer.cost.footprint.stages import footprint
from placer.degrees.choice import Choice
from placer.job.models import layer_parameters

if TYPE_CHECKING:
    from pathlib import Path

GPT3 = {"hidden": 12288, "feedforward": 49152, "seq_size": 2048, "attn_heads": 96,
        "attn_size": 128, "num_blocks": 96}  # fmt: skip
H100 = {"matrix": {"float16": {"tflops": 1000}}, "mem1": {"GiB": 80}}


def test_a_model_of_calculon_has_its_parameters() -> None:
    """GPT-3's blocks: 12 h^2 each."""
    job = job_of(GPT3, H100)
    assert job.model
    assert layer_parameters(job.model) == pytest.approx(12 * 12288**2, rel=1e-3)
    assert job.compute.tflops_per_gpu == pytest.approx(945, rel=0.01)


def test_choices_are_what_both_know() -> None:
    """No context ranks, whole layers a chunk, three modes of recomputation."""
    case = CASES[0]._replace(gpus=64, batch=64)
    found = list(choices(job_of(GPT3, H100), case))
    assert {c.recompute for c in found} == {"none", "core_attn", "full"}
    assert all(c.cp == 1 and 96 % (c.pp * c.vp) == 0 for c in found)
    assert all(c.gpus == c.global_batch == 64 for c in found)


def test_a_place_counts_what_is_better() -> None:
    """Of what fits, whoever else finds it."""
    found = [
        Both(Choice(tp=1), 1.0, 3.0),
        Both(Choice(tp=2), 2.0, 1.0),
        Both(Choice(tp=4), 3.0, float("inf")),
        Both(Choice(tp=8), 4.0, 2.0),
    ]
    assert place([1.0, 2.0, 2.0], 2.0) == 2
    line = row(CASES[0], found)
    assert "| 4 / 3 / 3 |" in line
    assert "| 2, 2, +100.0% |" in line
    assert "| 3, 3, +200.0% |" in line


def test_without_calculon_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A clear word and a status of its own."""
    assert main(["--calculon", str(tmp_path)]) == 2
    assert "skipped: Calculon cannot be loaded" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("bound", "text"), [(1.0, "10.0%"), (0.9995, "10.0%"), (0.88, "10.0% to 25.0%")]
)
def test_behind_says_what_a_search_that_was_cut_leaves_open(
    bound: float, text: str
) -> None:
    """Where a bound is below the best, more than is known may be possible."""
    run: Any = None
    best: Any = SimpleNamespace(rows=[{"step_time_s": 1.0}], lower_bound_s=bound)
    ran: Any = SimpleNamespace(rows=[{"step_time_s": 1.1}])
    assert behind(Judged(run, best, ran)) == text


@pytest.mark.slow
def test_published_choices_are_timed_as_they_ran() -> None:
    """Those that are not calibrated take the step that their throughput says."""
    reported = [run for run in runs() if not run.is_calibrated]
    assert len(reported) == 16
    assert all(run.job.compute.tflops_per_gpu < 10_000 for run in reported)


@pytest.mark.slow
def test_what_ran_fits_but_where_activations_lay_in_the_hosts_memory() -> None:
    """Runs that were found when the model was finished, recomputed as they were."""
    found = list(held_out())
    assert len(found) == 41
    needs = {run.title: footprint(run.job) for run in found}
    large = [
        run.title
        for run in found
        if (need := needs[run.title]) is None or need.total > run.memory
    ]
    assert large == [
        "Llama 3.1 405B FP8, 128 GB200, Bridge 25.09",
        "Llama 3 70B FP8, 64 GB200, Bridge 26.04.01",
    ]
    assert all(run.job.compute.tflops_per_gpu < 10_000 for run in found)
