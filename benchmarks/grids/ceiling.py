"""What any model could reach: ``python -m benchmarks.grids.ceiling --layouts CLONE``.

Steps of one layout scatter from run to run. A model that knew every step would still
not rank measured ones in full where they differ by less. And what was measured of the
same layouts with another kernel is a model of its own: it says how far a series follows
from the layouts. Those who measured vTrain's layouts predicted them too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import yaml

from benchmarks.grids.calibrated import judged
from benchmarks.grids.one_node import one_node, ranked_together
from benchmarks.grids.ranking import Ranking, ranked, spearman
from benchmarks.grids.series import layouts_of, measured

if TYPE_CHECKING:
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

REPEATS = Path(__file__).with_name("repeats.yaml")
DRAWS, FEWEST = 2000, 5
# Mean absolute error of vTrain, which times each kernel on an A100, on layouts of
# several nodes and of one (KAIST, ee.kaist.ac.kr, on Bang et al., MICRO 2024).
AUTHORS = 14.73e-2, 8.37e-2


def scatter_of_runs() -> float:
    """Standard deviation of the logarithm of a step, of all that was run twice."""
    entries = yaml.safe_load(REPEATS.read_text())["repeats"]
    logs = [np.log(entry["seconds"]) for entry in entries]
    squares = sum(float(((log - log.mean()) ** 2).sum()) for log in logs)
    return float((squares / sum(len(log) - 1 for log in logs)) ** 0.5)


def reached(seconds: FloatArray, scatter: float) -> tuple[float, float]:
    """Rank correlation of the steps with themselves, measured with such a scatter.

    The median, and what 19 of 20 draws reach.
    """
    draw = np.random.default_rng(0).normal(0.0, scatter, (DRAWS, len(seconds)))
    ranks = [spearman(seconds, seconds * np.exp(one)) for one in draw]
    return float(np.median(ranks)), float(np.quantile(ranks, 0.05))


def mean_error(several: Sequence[Ranking]) -> float:
    """Mean absolute error of all predicted steps, as a share of those measured."""
    off = [found.predicted / found.seconds - 1 for found in several]
    return float(np.abs(np.concatenate(off)).mean())


def beside_the_authors(on_one_node: Sequence[Ranking]) -> str:
    """Errors on vTrain's layouts at one rate, beside those of its own simulator."""
    several = [series for series in measured() if "vTrain" in series.title]
    errors = mean_error(ranked_together(several)), mean_error(on_one_node)
    mine, its = ([f"{error:.1%}" for error in both] for both in (errors, AUTHORS))
    return (
        f"vTrain's layouts: {mine[0]} off in the mean and {mine[1]} on one node; "
        f"its own simulator: {its[0]} and {its[1]}"
    )


def row(found: Ranking, scatter: float) -> str:
    """A line of the first table."""
    most, low = reached(found.seconds, scatter)
    return (
        f"| {found.series.title} | {found.series.gpus} | {len(found.layouts)} "
        f"| {found.correlation:.2f} | {most:.2f} | {low:.2f} |"
    )


def with_other_kernels(several: Sequence[Ranking]) -> Iterator[str]:
    """Lines of the second table: layouts of one model that two kernels ran."""
    for one, other in combinations(several, 2):
        same = _machine_and_model(one) == _machine_and_model(other)
        mine, its = _by_choice(one), _by_choice(other)
        both = [choice for choice in mine if choice in its]
        if not same or len(both) < FEWEST:
            continue
        first = np.array([mine[choice] for choice in both]).T
        second = np.array([its[choice] for choice in both]).T
        kernels = " | ".join(_kernel(found) for found in (one, other))
        logs = np.log(first[0] / second[0])
        yield (
            f"| {_machine_and_model(one)[0]} | {kernels} | {len(both)} "
            f"| {spearman(first[0], second[0]):.2f} "
            f"| {judged(*first)[0]:.2f} | {judged(*second)[0]:.2f} "
            f"| {logs.std(ddof=1) / 2**0.5:.1%} |"
        )


def _by_choice(found: Ranking) -> dict[object, tuple[float, float]]:
    """Measured and predicted seconds of each choice."""
    pairs = zip(found.seconds, found.predicted, strict=True)
    choices = [layout.choice for layout in found.layouts]
    return dict(zip(choices, pairs, strict=True))


def _machine_and_model(found: Ranking) -> tuple[str, int]:
    return found.series.title.partition(" tokens")[0], found.series.gpus


def _kernel(found: Ranking) -> str:
    return found.series.title.partition(" tokens")[2].strip(", ") or "FlashAttention 2"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.grids.ceiling")
    parser.add_argument("--layouts", type=Path, help="clone of Aleph-Alpha's layouts")
    clone = parser.parse_args(arguments).layouts
    scatter = scatter_of_runs()
    print(f"runs scatter by {scatter:.2%}")
    print(beside_the_authors(ranked_together(one_node())))
    llama = [ranked(series) for series in layouts_of(clone)] if clone else []
    print("| model | GPUs | layouts | rank | reachable | 19 of 20 |")
    print("|---|--:|--:|--:|--:|--:|")
    for found in [*(ranked(series) for series in measured()), *llama]:
        print(row(found, scatter))
    if clone:
        llama += [ranked(series) for series in layouts_of(clone, earlier=True)]
    print(
        "| model | one kernel | the other | layouts "
        "| rank | placer | placer | scatter |"
    )
    print("|---|---|---|--:|--:|--:|--:|--:|")
    for line in with_other_kernels(llama):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
