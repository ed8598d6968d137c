"""The page of the placement benchmark, written from the results alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import tables
from benchmarks.command import table
from benchmarks.drawn_page import drawn_page
from benchmarks.results import SAME
from benchmarks.run import PEERS

if TYPE_CHECKING:
    from benchmarks.command import Row
    from benchmarks.curve import Point
    from benchmarks.drawn import Outcome
    from benchmarks.results import Report, Result

INTRODUCTION = """\
# Placement benchmark

Does placer find better placements than tools that map graphs and processes onto
machines, and than the order a job gets without any? The page is written from results
alone; rows may come from different days. `benchmarks/README.md` has the commands.
"""

METHOD = """\
## How it is measured

* **Instances** A to H are racks of NVLink domains or hosts of 8 GPUs under a tree
  (`benchmarks/instances.py`). B, G and H are fragmented.
* **Hop cost** is the sum of weight x distance over all edges of the job. **gap** is 1 -
  bound / value, with placer's lower bound, for every tool; rounded up.
* **Scores** are placer's for every tool, capacities and rules checked by
  `placer.placement.check`. A row is the best of all settings and seeds of a tool, with
  the time of that one attempt; METIS gets five times the seeds.
* **wall** is from machine and job to a placement, for placer with the bound, in a
  process that has loaded its modules. placer uses all cores, Mt-KaHyPar two.
* **+ tp**, **+ stage**: such groups are contracted to one vertex first, by us.
* **Orders**: `megatron-default` and `replica-major` fill the leaves in turn; *whole
  stages* leaves GPUs empty that hold no whole stage.
"""

TIME = """\
## Predicted step time

Llama 3.1 405B as in `llama3.1-405b-mlperf-v6`, without the requirement that a pipeline
stays in a rack, on the fragmented racks of B. Mappers know no time: on **B** they are
given priority weights, on **Braw** the bytes per step, and are then scored alike.
"""

RANDOM = """\
## Random fragmented machines

`benchmarks/generate.py` draws a machine of 64 to 8,192 GPUs, takes trays, hosts and
racks away, and gives it a job that fills 70 to 100 % of what is left. The run fails if
placer is worse than any tool on any machine.
"""

COMMANDS = """\
## The whole command

`placer place` from its start to the written plan: the interpreter, reading the files,
search and bound, the baselines, the check. Median wall time of 5 runs, largest resident
size of any of them; placer alone, one after the other.
"""

LIMITS = """\
## Under a time limit

`python -m benchmarks.curve --json benchmarks/curve.json`: one search on G for each
limit, as `placer place --effort full` makes it. A limit ends the search; proof and
bound may take a moment more.

![Gap by time limit](pictures/curve.svg)
"""


@dataclass(frozen=True)
class Beside:
    """Results of the other benchmarks that the page shows.

    Attributes
    ----------
    commands : sequence of Row
        What whole commands take.
    drawn : sequence of Outcome
        Machines as clusters are.
    points : sequence of Point
        Values under a time limit.
    """

    commands: Sequence[Row] = ()
    drawn: Sequence[Outcome] = ()
    points: Sequence[Point] = ()


def page(report: Report, beside: Beside = Beside()) -> str:
    """The page as Markdown."""
    return "\n".join(_sections(report, beside)) + "\n"


def _sections(report: Report, beside: Beside) -> Iterator[str]:
    yield INTRODUCTION
    yield from _set_up(report)
    instances = report.of("hop-cost")
    if instances:
        yield "\n## Overview\n"
        yield from _overview(instances)
    yield from _losses(report)
    yield ""
    if beside.drawn:
        yield from drawn_page(beside.drawn)
    if beside.points:
        yield LIMITS
    if beside.commands:
        yield COMMANDS
        # A case of the overview has its time there.
        yield from table([row for row in beside.commands if row.topology != row.job])
        yield ""
    yield METHOD
    timed = report.of("time")
    if timed:
        yield TIME
        yield from tables.overview(timed)
        yield ""
    random = report.of("hop-cost", random=True)
    if random:
        yield RANDOM
        yield from _random(random)


def _set_up(report: Report) -> Iterator[str]:
    tools = [text for text in report.versions.values() if text]
    absent = [name for name in PEERS if name not in report.versions]
    yield f"Computer: {report.computer}. Peers: {', '.join(tools) or 'none'}."
    if absent:
        yield f"Not installed: {', '.join(absent)}."
    yield f"Limit: {report.time_limit:g} s an attempt."


def _overview(results: Sequence[Result]) -> Iterator[str]:
    yield (
        "Values of others are relative to placer's: +1 % is 1 % more cost. A value\n"
        "in bold is one that beats placer.\n"
    )
    yield from tables.overview(results)
    proved = [r.case for r in results if r.gap(r.ours.value) <= SAME]
    yield f"\nProved optimal: {', '.join(proved) or 'none'}."


def _losses(report: Report) -> Iterator[str]:
    yield "\n## Where placer loses\n"
    named = [*report.of("hop-cost"), *report.of("time")]
    random = report.of("hop-cost", random=True)
    lost = [result for result in named if result.better()]
    for result in lost:
        text = ", ".join(
            f"{tables.label(row.best.spec)} ({tables.against(result, row.best.value)})"
            for row in sorted(result.better(), key=lambda row: row.best.value)
        )
        yield f"* **{result.case}, {result.objective}**: {text}."
    beaten = sum(bool(result.better()) for result in random)
    if beaten:
        yield (
            f"* **Random machines**: on {beaten} of {len(random)} some tool is better, "
            "[listed below](#random-fragmented-machines)."
        )
    elif not lost:
        yield "On value: nowhere in these results."
    slower = {
        f"{result.case} ({result.objective})": result.faster()
        for result in named
        if result.faster()
    }
    if slower:
        yield "\nOn time, tools that reach placer's value or a better one sooner:\n"
    for name, rows in slower.items():
        text = ", ".join(
            f"{tables.label(row.best.spec)} {tables.seconds(row.best.wall_s)}"
            for row in sorted(rows, key=lambda row: row.best.wall_s)
        )
        yield f"* {name}: {text}."
    if slower:
        yield (
            "\nAn order takes no search. placer tries the orders first, so where one "
            "of them is optimal, its time is that of the bound that proves it."
        )


def _random(results: Sequence[Result]) -> Iterator[str]:
    gaps = [result.gap(result.ours.value) for result in results]
    proved = sum(gap <= SAME for gap in gaps)
    ranks = [result.ranks for result in results]
    yield (
        f"{len(results)} machines, {min(ranks):,} to {max(ranks):,} ranks. {proved} "
        f"are proved optimal; the median gap is {tables.percent(median(gaps))}, the "
        f"largest {tables.percent(max(gaps))}. The longest search took "
        f"{tables.seconds(max(r.ours.wall_s for r in results))}.\n"
    )
    yield from tables.random_table(results)
    beaten = [result for result in results if result.better()]
    if beaten:
        yield "\nMachines on which placer is beaten:\n"
        yield from tables.gap_table(beaten)
