"""What placer finds under a time limit: ``python -m benchmarks.curve``.

One search for each limit, because a search plans by its limit: the value as a function
of time, against the best lower bound of all of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from benchmarks.cases import case
from benchmarks.tables import percent
from placer.base.threads import granted_cores
from placer.cost.hop_cost import HopCost
from placer.draw.line_plot import Panel, Series, line_plot
from placer.solve.problem.compiled import Problem
from placer.solve.problem.params import FULL, params_of
from placer.solve.run.budget import Budget
from placer.solve.search import solve

LIMITS = (5.0, 10.0, 15.0, 30.0, 60.0)


@dataclass(frozen=True)
class Point:
    """One search.

    Attributes
    ----------
    instance : str
    limit_s, wall_s : float, s
    value, lower_bound : float
        The bound is 0 where the limit left no time for one.
    """

    instance: str
    limit_s: float
    wall_s: float
    value: float
    lower_bound: float


def measured(instance: str, limit: float) -> Point:
    """A search on an instance, as ``placer place --effort full`` makes it."""
    topology, job = case(instance, "hop-cost")
    start = perf_counter()
    problem = Problem.of(topology, job, "hop-cost").with_params(**params_of(FULL))
    solution = solve(problem, Budget(limit, workers=granted_cores()))
    wall = perf_counter() - start
    value = HopCost(topology, job).cost(solution.placement.gpu_of_rank)
    return Point(instance, limit, round(wall, 2), value, solution.lower_bound)


def gaps(points: Sequence[Point]) -> list[float]:
    """Share of each value above the best bound of all."""
    bound = max(point.lower_bound for point in points)
    return [1 - bound / point.value for point in points]


def table(points: Sequence[Point]) -> Iterator[str]:
    """The points of one instance as a Markdown table."""
    yield "| limit | wall | value | gap to the best bound |"
    yield "|--:|--:|--:|--:|"
    for point, gap in zip(points, gaps(points), strict=True):
        yield (
            f"| {point.limit_s:g} s | {point.wall_s:.1f} s | {point.value:,.0f} "
            f"| {percent(gap)} |"
        )


def picture(points: Sequence[Point]) -> str:
    """The gap over the limit as an SVG document."""
    found = tuple(
        (point.limit_s, gap, f"{point.value:,.0f}")
        for point, gap in zip(points, gaps(points), strict=True)
    )
    title = f"{points[0].instance}: gap to the best bound"
    series = (Series("gap", found),)
    limits = "time limit, s", lambda x: f"{x:g}"
    return line_plot([Panel(title, series, lambda y: f"{y:.2%}", *limits)], title)


def read(path: Path) -> list[Point]:
    """The points of a file; none when it is not there."""
    rows = json.loads(path.read_text()) if path.exists() else []
    return [Point(**row) for row in rows]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.curve")
    parser.add_argument("--instance", default="G")
    parser.add_argument("--limits", type=float, nargs="+", default=LIMITS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    points = [measured(options.instance, limit) for limit in options.limits]
    print(*table(points), sep="\n")
    if options.json:
        rows = [asdict(point) for point in points]
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
