"""Figures that pages show, and what they rest on."""

import pytest

from benchmarks import experts
from benchmarks.choices import held_out, runs
from benchmarks.restarts import CASE, RULES, by_placer, row, table
from placer.cost.footprint.stages import footprint
from tests.doc_blocks import ROOT


def test_eplbs_example(capsys):
    """EPLB's own output, the least by groups, and the least of all."""
    experts.main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["1", "129.1", "156.0", "151.0", "136.0"],
        ["2", "144.5", "179.5", "179.5", "172.0"],
    ]


def test_rules_of_numbering_after_a_failure():
    """Each row is what they do today: 112 of 128 nodes get new ranks, or 16 ranks."""
    shown = (ROOT / "docs/in-the-job.md").read_text().splitlines()
    assert [line for line in table() if line not in shown] == []
    after = RULES["nvidia-resiliency-ext 0.7, `--ft-segment`"](CASE)
    assert row(CASE, "", CASE.before, after).endswith("| 128 | 112 | 0 |")
    assert row(CASE, "", *by_placer(CASE)).endswith("| 16 | 0 | 0 |")


@pytest.mark.slow
def test_published_choices_are_timed_as_they_ran():
    """Those that are not calibrated take the step that their throughput says."""
    reported = [run for run in runs() if not run.is_calibrated]
    assert len(reported) == 16
    assert all(run.job.compute.tflops_per_gpu < 10_000 for run in reported)


@pytest.mark.slow
def test_what_ran_fits_but_where_activations_lay_in_the_hosts_memory():
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
