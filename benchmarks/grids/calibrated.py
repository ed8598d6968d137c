"""Measured layouts, ranked after a few of them were measured.

``python -m benchmarks.grids.calibrated``: as who has measured five layouts, calibrates
on them (``placer calibrate --links``) and asks for the rest. Five are drawn at random,
again and again; those drawn are never judged. With ``--elsewhere TITLE`` the links are
those that all layouts of one series show, and the other series of that cluster are
judged.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.grids.ranking import Ranking, machine_of, predicted_s, ranked, spearman
from benchmarks.grids.ranking import row as ranking_row
from benchmarks.grids.series import layouts_of, measured
from placer.calibrate.beliefs import Posterior, most_likely
from placer.calibrate.links import MODEL_ERROR, beliefs_of, with_efficiencies

if TYPE_CHECKING:
    import numpy.typing as npt

    from benchmarks.grids.series import Layout, Series

    FloatArray = npt.NDArray[np.float64]

MEASURED, DRAWS, LEFT = 5, 20, 3


@dataclass(frozen=True)
class Draws:
    """One series, calibrated on a few layouts, many times.

    Attributes
    ----------
    ranking : Ranking
        Not calibrated, but for the rate.
    before, after : ndarray, shape (draws, 2)
        Spearman's correlation and regret of the layouts that were not drawn, by the
        model as it is and when calibrated on those that were.
    """

    ranking: Ranking
    before: FloatArray
    after: FloatArray


def drawn(series: Series, draws: int) -> Draws | None:
    """The series after each of so many draws; None where too few would be left."""
    plain = ranked(series)
    count = len(plain.layouts)
    if count < MEASURED + LEFT:
        return None
    before, after = [], []
    for seed in range(draws):
        chosen = np.random.default_rng(seed).choice(count, MEASURED, replace=False)
        rest = np.setdiff1d(np.arange(count), chosen)
        found = calibrated(plain, chosen)
        others = [plain.layouts[i] for i in rest]
        before.append(judged(plain.seconds[rest], plain.predicted[rest]))
        after.append(judged(plain.seconds[rest], steps(plain, others, found.values)))
    return Draws(plain, np.array(before), np.array(after))


def calibrated(plain: Ranking, chosen: Sequence[int] | FloatArray) -> Posterior:
    """Rate and efficiencies of both tiers from the layouts that were drawn."""
    layouts = [plain.layouts[int(i)] for i in chosen]
    return most_likely(
        lambda constants: steps(plain, layouts, constants),
        plain.seconds[np.asarray(chosen, dtype=np.int64)],
        MODEL_ERROR,
        beliefs_of(machine_of(plain.series).tiers),
    )


def steps(
    plain: Ranking, layouts: Sequence[Layout], constants: FloatArray
) -> FloatArray:
    """Seconds of a sample, with constants as `fit_links` has them."""
    series = plain.series
    machine = with_efficiencies(machine_of(series), _shares(constants))
    rate = plain.tflops * exp(-float(constants[0]))
    return np.array([predicted_s(machine, series, one, rate) for one in layouts])


def judged(seconds: FloatArray, predicted: FloatArray) -> tuple[float, float]:
    """Spearman's correlation, and the regret."""
    regret = seconds[predicted.argmin()] / seconds.min() - 1
    return spearman(seconds, predicted), float(regret)


def shown_by(series: Series) -> dict[str, float]:
    """What tiers reach by all layouts of a series, in what the machine says."""
    plain = ranked(series)
    found = calibrated(plain, range(len(plain.layouts)))
    return _shares(found.values)


def _shares(constants: FloatArray) -> dict[str, float]:
    names = ("node", "cluster")
    return dict(zip(names, np.exp(constants[1:]).tolist(), strict=True))


def elsewhere(series: Sequence[Series], title: str) -> None:
    """Print the table of all series of one cluster but that of the title."""
    (one,) = (s for s in series if s.title == title)
    share = shown_by(one)
    print(", ".join(f"{tier}: {value:.3g}" for tier, value in share.items()))
    for other in series:
        if other is not one:
            print(ranking_row(ranked(other, share)), flush=True)


def row(title: str, gpus: int, found: Draws) -> str:
    """A line of the table: medians, and the worst of nine draws in ten."""
    rank, regret = np.median(found.before, axis=0)
    better, least = np.median(found.after, axis=0)
    low, high = np.quantile(found.after[:, 0], 0.1), np.quantile(found.after[:, 1], 0.9)
    return (
        f"| {title} | {gpus} | {len(found.ranking.layouts) - MEASURED} "
        f"| {rank:.2f} | {better:.2f} | {low:.2f} "
        f"| {regret:.1%} | {least:.1%} | {high:.1%} |"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.grids.calibrated")
    parser.add_argument("--layouts", type=Path, help="clone of Aleph-Alpha's layouts")
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--elsewhere", metavar="TITLE", help="links of one series")
    options = parser.parse_args(arguments)
    if options.elsewhere:
        clone = options.layouts
        every = layouts_of(clone) + layouts_of(clone, earlier=True)
        elsewhere(every, options.elsewhere)
        return 0
    print(
        "| model | GPUs | judged | rank | calibrated | 9 of 10 "
        "| regret | calibrated | 9 of 10 |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for series in measured() + (layouts_of(options.layouts) if options.layouts else []):
        found = drawn(series, options.draws)
        if found:
            print(row(series.title, series.gpus, found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
