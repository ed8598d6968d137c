"""Measured layouts: read as they were written, ranked as is written beside them."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.grids import calibrated, ceiling, one_node
from benchmarks.grids.ranking import ranked, row, spearman
from benchmarks.grids.series import HELD_OUT, measured

ROOT = Path(__file__).parents[2]
RANKED = (ROOT / "benchmarks/grids/ranked.md").read_text()
PAGE = " ".join((ROOT / "docs/evidence/tune.md").read_text().split())


@pytest.fixture(scope="module")
def rankings():
    return {series.title: ranked(series) for series in measured()}


def test_every_layout_takes_the_gpus_of_its_series():
    """109 layouts of vTrain, 16 of BLOOM and seven of four days before."""
    every = {series.title: series for series in measured()}
    assert sum(len(s.layouts) for t, s in every.items() if "vTrain" in t) == 109
    assert len(every["181B, BLOOM"].layouts) == 16
    assert len(every["181B, BLOOM of 21 February"].layouts) == 7
    for series in every.values():
        assert {layout.job.world_size for layout in series.layouts} == {series.gpus}


def test_the_rank_correlation_is_spearmans():
    """By hand: of 1 2 3 4 and 1 2 4 3, 1 - 6 x 2 / (4 x 15); ties share ranks."""
    one = np.array([1.0, 2.0, 3.0, 4.0])
    assert spearman(one, np.array([1.0, 2.0, 4.0, 3.0])) == pytest.approx(0.8)
    assert spearman(one, -one) == pytest.approx(-1)
    tied = spearman(one, np.array([1.0, 2.0, 2.0, 3.0]))
    assert tied == pytest.approx(4.5 / 22.5**0.5)


@pytest.mark.slow
def test_what_comes_out_is_written_down(rankings):
    """Every series, those that are ranked badly too, and what could be reached."""
    for ranking in rankings.values():
        assert row(ranking) in RANKED
        assert ceiling.row(ranking, ceiling.scatter_of_runs()) in RANKED


@pytest.mark.slow
def test_grids_found_afterwards_are_written_down():
    """84 layouts; each series takes its GPUs, and none is hidden."""
    series = measured(HELD_OUT)
    assert sum(len(one.layouts) for one in series) == 84
    for one in series:
        assert {layout.job.world_size for layout in one.layouts} == {one.gpus}
        assert row(ranked(one)) in RANKED


@pytest.mark.slow
def test_every_model_is_given_a_good_layout(rankings):
    """What comes out best is within 5 % of the fastest, but for BLOOM's first runs."""
    regrets = {title: ranking.regret for title, ranking in rankings.items()}
    assert regrets.pop("181B, BLOOM of 21 February") < 0.08
    assert max(regrets.values()) <= 0.05


@pytest.mark.slow
def test_what_five_layouts_bring_is_written_down():
    """BLOOM: what links reach orders the layouts that were not drawn better."""
    series = next(one for one in measured() if "BLOOM" in one.title)
    found = calibrated.drawn(series, calibrated.DRAWS)
    assert found
    assert np.median(found.after[:, 0]) > np.median(found.before[:, 0]) + 0.2
    assert calibrated.row(series.title, series.gpus, found) in RANKED


@pytest.mark.slow
def test_launches_order_the_layouts_of_one_node():
    """Without them fewer series are ranked well; the page shows both, and errors."""
    judged = one_node.ranked_together(one_node.one_node())
    assert one_node.row("all", judged) in RANKED
    assert np.median([one.correlation for one in judged]) > 0.9
    beside = ceiling.beside_the_authors(judged)
    assert "9.9% off in the mean and 11.1% on one node" in beside
    assert "9.9 and 11.1 %" in PAGE
    free = one_node.ranked_together(one_node.one_node(0.0)[::6])
    assert np.median([one.correlation for one in free]) < 0.7
