"""Measured layouts: read as they were written, ranked as the page says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from benchmarks.grids import calibrated, ceiling, one_node
from benchmarks.grids.ranking import Ranking, ranked, row, spearman
from benchmarks.grids.series import HELD_OUT, LAUNCH_TIME, layouts_of, measured
from placer.job.models import total_parameters

PAGE = Path(__file__).parents[2] / "docs/tune-validation.md"


@pytest.fixture(scope="module")
def rankings() -> dict[str, Ranking]:
    return {series.title: ranked(series) for series in measured()}


def test_every_layout_takes_the_gpus_of_its_series() -> None:
    """109 layouts of vTrain, 16 of BLOOM and seven of four days before."""
    every = {series.title: series for series in measured()}
    assert sum(len(s.layouts) for t, s in every.items() if "vTrain" in t) == 109
    assert len(every["181B, BLOOM"].layouts) == 16
    assert len(every["181B, BLOOM of 21 February"].layouts) == 7
    for series in every.values():
        assert {layout.job.world_size for layout in series.layouts} == {series.gpus}


def test_models_are_as_large_as_they_are_called() -> None:
    """BLOOM's runs had 72 layers: 70 would be 176B."""
    for series in measured():
        model = series.layouts[0].alone.model
        assert model
        told = float(series.title.partition("B")[0]) * 1e9
        assert total_parameters(model) == pytest.approx(told, rel=0.02)


def test_the_rank_correlation_is_spearmans() -> None:
    """By hand: of 1 2 3 4 and 1 2 4 3, 1 - 6 x 2 / (4 x 15); ties share ranks."""
    one = np.array([1.0, 2.0, 3.0, 4.0])
    assert spearman(one, np.array([1.0, 2.0, 4.0, 3.0])) == pytest.approx(0.8)
    assert spearman(one, -one) == pytest.approx(-1)
    tied = spearman(one, np.array([1.0, 2.0, 2.0, 3.0]))
    assert tied == pytest.approx(4.5 / 22.5**0.5)


@pytest.mark.slow
def test_the_page_shows_what_comes_out(rankings: dict[str, Ranking]) -> None:
    """Every series, those that are ranked badly too, and what could be reached."""
    shown = PAGE.read_text()
    for ranking in rankings.values():
        assert row(ranking) in shown
        assert ceiling.row(ranking, ceiling.scatter_of_runs()) in shown


def test_the_page_shows_grids_found_afterwards() -> None:
    """84 layouts; each series takes its GPUs, and none is hidden."""
    shown = PAGE.read_text()
    series = measured(HELD_OUT)
    assert sum(len(one.layouts) for one in series) == 84
    for one in series:
        assert {layout.job.world_size for layout in one.layouts} == {one.gpus}
        assert row(ranked(one)) in shown


@pytest.mark.slow
def test_every_model_is_given_a_good_layout(rankings: dict[str, Ranking]) -> None:
    """What comes out best is within 5 % of the fastest, but for BLOOM's first runs."""
    regrets = {title: ranking.regret for title, ranking in rankings.items()}
    assert regrets.pop("181B, BLOOM of 21 February") < 0.08
    assert max(regrets.values()) <= 0.05


@pytest.mark.slow
def test_memory_takes_its_time() -> None:
    """175B: without it, 0.76 instead of 0.88."""
    series = next(one for one in measured() if one.title.startswith("175B"))
    free = [
        replace(
            layout,
            alone=replace(
                layout.alone,
                compute=replace(layout.alone.compute, memory_bandwidth=0.0),
            ),
        )
        for layout in series.layouts
    ]
    without = ranked(replace(series, layouts=tuple(free)))
    assert without.correlation < 0.8 < ranked(series).correlation


@pytest.mark.slow
def test_messages_are_cut_where_the_framework_cuts_them() -> None:
    """In one piece they take longer, eight times on a tp group of eight."""
    series = next(one for one in measured() if one.title.startswith("39.1B"))
    whole = replace(series, cuts_messages=False)
    assert series.cuts_messages
    assert ranked(whole).correlation < ranked(series).correlation


@pytest.mark.slow
def test_the_page_shows_what_five_layouts_bring() -> None:
    """BLOOM: what links reach orders the layouts that were not drawn better."""
    series = next(one for one in measured() if "BLOOM" in one.title)
    found = calibrated.drawn(series, calibrated.DRAWS)
    assert found
    assert np.median(found.after[:, 0]) > np.median(found.before[:, 0]) + 0.2
    assert calibrated.row(series.title, series.gpus, found) in PAGE.read_text()


def test_layouts_of_one_node() -> None:
    """1,440 rows; 72 series on 4 and 8 GPUs have eight layouts or more."""
    assert len(list(one_node.rows())) == 1440
    series = one_node.one_node()
    assert len(series) == 72
    assert sum(len(one.layouts) for one in series) == 1088
    for one in series:
        assert {layout.job.world_size for layout in one.layouts} == {one.gpus}
        assert {layout.samples for layout in one.layouts} == {
            int(one.title.split()[-2])
        }


def test_launches_are_timed_on_what_is_not_judged() -> None:
    """Two GPUs, width 1,024; forward runs twice there."""
    assert one_node.layer_seconds() * 3 / 4 == pytest.approx(LAUNCH_TIME, rel=2e-3)
    assert {one.gpus for one in one_node.one_node()} == {4, 8}


@pytest.mark.slow
def test_launches_order_the_layouts_of_one_node() -> None:
    """Without them fewer series are ranked well; the page shows both, and errors."""
    judged = one_node.ranked_together(one_node.one_node())
    assert one_node.row("all", judged) in PAGE.read_text()
    assert np.median([one.correlation for one in judged]) > 0.9
    beside = ceiling.beside_the_authors(judged)
    assert "9.9% off in the mean and 11.1% on one node" in beside
    assert "9.9 and 11.1 %" in PAGE.read_text()
    free = one_node.ranked_together(one_node.one_node(0.0)[::6])
    assert np.median([one.correlation for one in free]) < 0.7


@pytest.mark.slow
def test_waves_order_layouts() -> None:
    """BLOOM's small micro-batches leave much of their last waves empty."""
    series = next(one for one in measured() if one.title == "181B, BLOOM")
    by_flops = [
        replace(
            layout,
            alone=replace(
                layout.alone, compute=replace(layout.alone.compute, multiprocessors=0)
            ),
        )
        for layout in series.layouts
    ]
    without = ranked(replace(series, layouts=tuple(by_flops)))
    assert without.correlation < ranked(series).correlation - 0.1
    assert without.scatter > ranked(series).scatter


def test_calibrated_layouts_are_not_judged() -> None:
    """Too few for others to be left: nothing is said."""
    series = measured()[0]
    few = replace(series, layouts=series.layouts[:7])
    assert calibrated.drawn(few, 1) is None


def test_chunks_are_read() -> None:
    """vp stands behind the batch; where it is not said there is one chunk."""
    chunked = measured(HELD_OUT)[0].layouts
    assert sorted({one.choice.vp for one in chunked}) == [1, 2, 3, 6, 9]
    assert {one.choice.global_batch for one in chunked} == {32}


def test_steps_that_differ_by_less_than_runs_cannot_be_ranked() -> None:
    """Steps far apart are ranked in full, steps within the scatter are not."""
    apart = np.array([1.0, 2.0, 4.0, 8.0])
    assert ceiling.reached(apart, 0.01) == (1.0, 1.0)
    median, low = ceiling.reached(1 + apart / 1000, 0.01)
    assert low < median < 1.0


def test_errors_are_relative_to_what_was_measured() -> None:
    """Half of 2 s too long, and 4 s right: a quarter in the mean."""
    one = ranked(measured()[0])
    seconds, predicted = np.array([2.0, 4.0]), np.array([3.0, 4.0])
    made = replace(one, seconds=seconds, predicted=predicted)
    assert ceiling.mean_error([made]) == 0.25


def test_the_scatter_of_runs() -> None:
    """What the page says; less than the widest pair alone, log(113.54 / 110.42)."""
    scatter = ceiling.scatter_of_runs()
    assert f"scatters by\n{scatter * 100:.2f} %" in PAGE.read_text()
    assert 0 < scatter < np.log(113.54 / 110.42)


def test_no_clone_no_series(tmp_path: Path) -> None:
    """A folder without sheets has none."""
    assert layouts_of(tmp_path) == []
    assert layouts_of(tmp_path, earlier=True) == []


def test_older_kernels_are_read_apart(tmp_path: Path) -> None:
    """Three series of one sheet: two kernels keep scores, FlashAttention 1 does not."""
    head = [
        "World Size",
        "Average Step Time",
        "kernel",
        "micro_batch_size",
        "model_parallel_size",
        "pipe_parallel_size",
        "activation_checkpointing_type",
    ]
    kernels = "flash_attention2", "flash_attentionv1.0.8", "fused", "torch"
    runs = [["64", "40.5", name, "1", "2", "2", "disabled"] for name in kernels]
    _write_sheet(tmp_path / "data", [["a title"], head, *runs])
    (newer,) = layouts_of(tmp_path)
    older = layouts_of(tmp_path, earlier=True)
    assert newer.title == "13B, 2,048 tokens"
    kept = {one.title: one.layouts[0].job.memory.attention for one in older}
    assert kept == {
        "13B, 2,048 tokens, FlashAttention 1": "fused",
        "13B, 2,048 tokens, Megatron's softmax": "unfused",
        "13B, 2,048 tokens, PyTorch's softmax": "unfused",
    }
    assert {one.layouts[0].seconds for one in older} == {40.5}


def _write_sheet(folder: Path, lines: list[list[str]]) -> None:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    rows = "".join(
        "<row>"
        + "".join(f'<c r="{"ABCDEFG"[i]}1"><v>{v}</v></c>' for i, v in enumerate(line))
        + "</row>"
        for line in lines
    )
    folder.mkdir()
    with ZipFile(folder / "llama_13B_bfloat16_64_GPUs_all_runs.xlsx", "w") as book:
        book.writestr("xl/sharedStrings.xml", f'<sst xmlns="{space}"/>')
        book.writestr(
            "xl/worksheets/sheet1.xml",
            f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>',
        )


def test_another_kernel_is_a_model_of_its_own() -> None:
    """By hand: the same choices, one pair of them swapped."""
    series = measured()[0]
    layouts = list(series.layouts[:5])
    one = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    other = np.array([1.0, 2.0, 3.0, 5.0, 4.0])
    first = Ranking(replace(series, title="9B, 2 tokens"), layouts, one, one, 1.0)
    title = "9B, 2 tokens, FlashAttention 1"
    second = Ranking(replace(series, title=title), layouts, other, one, 1.0)
    (line,) = ceiling.with_other_kernels([first, second])
    assert line.startswith(
        "| 9B, 2 | FlashAttention 2 | FlashAttention 1 | 5 | 0.90 | 1.00 | 0.90 |"
    )
    moved = replace(series, title=title, gpus=8)
    assert not [*ceiling.with_other_kernels([first, replace(second, series=moved)])]
