"""The page of the placement benchmark, written from the results alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import curve, tables
from benchmarks.command import table
from benchmarks.drawn_page import drawn_page
from benchmarks.earlier import CONTRACTED, EARLIER, RAW
from benchmarks.results import SAME
from benchmarks.run import PEERS

if TYPE_CHECKING:
    from benchmarks.command import Row
    from benchmarks.curve import Point
    from benchmarks.drawn import Outcome
    from benchmarks.results import Report, Result

INTRODUCTION = """\
# Placement benchmark

Does placer find better placements than other tools, and than the order a job gets
without any? This page compares them on the same machines and jobs: with tools that
map graphs and processes onto machines, and with sorted hosts and the like. A
benchmark writes the page from its results:

```
pip install '.[bench]'    # and the system package scotch
results=benchmarks/placement.json
python -m benchmarks.placement --json $results
python -m benchmarks.placement --json $results --instances F,G --seeds 1
python -m benchmarks.placement --json $results --objective time
commands=benchmarks/command.json
python -m benchmarks.command --json $commands
python -m benchmarks.command --json $commands --instances A,Araw,B,C,D,E,F,G,H
python -m benchmarks.command --json $commands --instances B --objective time
python -m benchmarks.command --json $commands --large
python -m benchmarks.command --json $commands --large --objective hop-cost
python -m benchmarks.drawn --peers orders,METIS --json benchmarks/drawn.json
python -m benchmarks.curve --json benchmarks/curve.json
python -m benchmarks.placement --json $results --random 50 --seeds 1 \\
  --commands $commands --drawn benchmarks/drawn.json --curve benchmarks/curve.json \\
  --page docs/benchmarks.md
```

Each command adds its results to the file, and `--page` writes this page from all of it.
A peer that is not installed is left out and said to be. `--peers ""` runs placer alone
and keeps the rows of the others, so rows may come from different days.
"""

METHOD = """\
## How it is measured

* **Instances** A to H are racks of NVLink domains or hosts of 8 GPUs under a tree
  (`benchmarks/instances.py`). A leaf is a scale-up domain, its capacity an upper
  bound. B, G and H are fragmented: leaves of 48 to 72 GPUs, or hosts down.
* **Hop cost** J is the sum of weight x distance over all edges of the job: rings for
  tensor, context and data parallel groups, chains for pipelines, all pairs for
  experts. Most of a good J is the part inside leaves that no placement saves, so
  **X/X_LB** compares what lies above it with the same part of the bound.
* **gap** is 1 - bound / value, with placer's lower bound, for every tool; rounded up.
* **Scores** are placer's for every tool. Capacities and rules are checked by
  `placer.placement.check`. Scotch and Mt-KaHyPar report their own cost of their
  mapping; that it equals ours is a test.
* **A row** is the best of all settings and seeds of a tool, with the time of that one
  attempt alone; the worst is among the remarks. METIS, which takes a moment, gets five
  times the seeds. An attempt that takes longer than the limit is stopped.
* **wall** is the time from machine and job to a placement, in a process that has
  loaded its modules; for placer that includes the bound. **in the tool** leaves out
  the making of the graph and files. **memory** is the largest resident size of the
  process, about 100 MB of which are Python, numpy and the models that every tool
  shares here. placer uses all cores, Mt-KaHyPar two.
* **+ tp**, **+ stage**: tensor parallel groups, or whole stages (expert groups where
  there are some), are contracted to one vertex first. That is our preprocessing, not
  the tool's.
* **multisection**: Mt-KaHyPar's target graph is impractical with many leaves, so above
  256 of them the outer tiers are mapped first, then each part. Ours as well.
* **ranks moved**: METIS balances softly. Where a leaf is too full, the ranks with the
  least weight to it move to the cheapest leaves with room.
* **Orders**: `megatron-default` (tp-cp-ep-dp-pp) and `replica-major` (tp-cp-ep-pp-dp)
  fill the leaves in turn, `sorted-hosts` goes by host name as text. *Whole stages*
  leaves GPUs of a leaf empty that hold no whole stage. Orders with the same result are
  shown once.
"""

TIME = """\
## Predicted step time

Llama 3.1 405B as in the MLPerf v6.0 preset `llama3.1-405b-mlperf-v6`, without the
requirement that a pipeline stays in a rack, on the fragmented racks of B with the
links of `azure-gb200-mlperf-v6`. Tensor and context parallel groups must stay in a
rack. Mappers know no time: on **B** they are given the priority weights of the
instances, on **Braw** the bytes per step. Their placements are then scored as placer's
own. Differences in predicted time are small because most of a step is compute and most
traffic hides behind it. Where one pipeline must be cut, placer cuts all of them alike,
so that several replicas share a rack stage by stage and their gradient groups drive
more NICs.

What placer saves of the step that a job gets without any tool; *whole stages* leaves
GPUs of a rack empty that hold no whole stage. Ranks are numbered in Megatron's default
order, so `given-order` is that order on hosts as given.
"""

RANDOM = """\
## Random fragmented machines

`benchmarks/generate.py` draws a machine of 64 to 8,192 GPUs (racks of 18 trays, or
units of 32 hosts), takes trays, hosts and racks away, and gives it a job that fills 70
to 100 % of what is left. The run fails if placer is worse than any tool on any
machine.
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

REFERENCE = """\
## Values of an earlier run

Best hop cost by tool with more settings and up to four seeds, the tools as programs
built from source or packaged, some of which are not run here. They show whether the
set-up of this page holds a tool back. `raw` is without contraction; over capacity is
repaired.
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
        yield from curve.table(beside.points)
        yield ""
    if beside.commands:
        yield COMMANDS
        yield from table(beside.commands)
        yield ""
    yield METHOD
    if instances:
        yield "## Instances\n"
        yield from _cases(instances)
    timed = report.of("time")
    if timed:
        yield TIME
        yield from tables.gain_table(timed[0])
        yield ""
        yield from _cases(timed)
    random = report.of("hop-cost", random=True)
    if random:
        yield RANDOM
        yield from _random(random)
    if instances:
        yield REFERENCE
        yield from _reference(instances)


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


def _cases(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        bound = tables.shown(result, result.ours.lower_bound)
        yield f"### {result.case}: {tables.sizes(result)}\n"
        yield (
            f"{result.ranks:,} ranks on {result.leaves:,} leaves with "
            f"{result.gpus:,} GPUs. Lower bound {bound}.\n"
        )
        yield from tables.case_table(result)
        yield ""


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
    yield (
        f"\nThe {tables.WORST} widest gaps, and every machine on which placer is "
        "beaten:\n"
    )
    yield from tables.gap_table(results)
    yield ""


def _reference(results: Sequence[Result]) -> Iterator[str]:
    names = [result.case for result in results]
    yield f"| tool | {' | '.join(names)} |"
    yield f"|---|{'--:|' * len(names)}"
    for tool, values in EARLIER.items():
        for how in (RAW, CONTRACTED):
            cells = [values.get(name, {}).get(how) for name in names]
            if any(cells):
                shown = " | ".join(f"{cell:,}" if cell else "" for cell in cells)
                yield f"| {tool}, {how} | {shown} |"
