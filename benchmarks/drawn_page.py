"""The part of the benchmark's page about drawn machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.attempt import STARTS, TIMES_PLACER
from benchmarks.drawn import OBJECTIVES, WORSE, Outcome
from benchmarks.tables import percent
from benchmarks.worth import NOTHING, saved, worth_table

GAPS = (0.0, 0.001, 0.01, 0.03)
WIDEST = 4
PICTURE = "pictures/worth.svg"

INTRODUCTION = """\
## Machines as clusters are

`benchmarks/clusters.py` draws machines as a job is granted them: what a scheduler has
left free, nodes down, hosts with 7 of 8 GPUs, leaves never filled, whole ones; hosts of
8 GPUs under leaves and spines, and racks of 18 trays, uplinks up to 4:1.
`benchmarks/cluster_jobs.py` puts nine kinds of jobs on them. placer had 12 s of a busy
machine for each; mappers were run on the hop cost.
"""

WIDE = """
Most of the wide gaps are expert groups of 32 or 64 ranks in racks that have fewer GPUs
left, or just as many: some must lie in parts there.
"""

WORTH = f"""\
### What it is worth

Share of the step that placer saves against the best of six simple orders, by the share
of GPUs that leaves or racks lack. A cell is the median, the most, and the number of
machines; 0 is less than {NOTHING:.2%}.

![Step time saved, by kind of job and fragmentation]({PICTURE})
"""


def drawn_page(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The section, from the outcomes alone."""
    yield INTRODUCTION
    yield from _gaps(outcomes)
    yield ""
    yield from _losers(outcomes)
    timed = [one for one in outcomes if one.objective == "time"]
    yield ""
    yield WORTH
    yield from worth_table(timed)
    yield ""
    yield from _zeros(timed)
    yield ""


def _gaps(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """How many gaps are how wide, and the widest."""
    heads = ["proved", *(f"<= {gap:.1%}" for gap in GAPS[1:])]
    yield f"| objective | jobs | machines | {' | '.join(heads)} | median | widest |"
    yield f"|---|---|{'--:|' * (len(heads) + 3)}"
    for objective in OBJECTIVES:
        of_all = [one for one in outcomes if one.objective == objective]
        in_racks = [one for one in of_all if _is_wide(one)]
        others = [one for one in of_all if not _is_wide(one)]
        for jobs, of in (
            ("all", of_all),
            ("experts in racks", in_racks),
            ("all others", others),
        ):
            if of:
                yield f"| {objective} | {jobs} | {len(of)} | {_gap_cells(of)} |"
    yield WIDE
    yield "The widest gaps:\n"
    yield "| draw | machine | job | ranks | objective | gap | method |"
    yield "|--:|---|---|--:|---|--:|---|"
    for one in sorted(outcomes, key=lambda one: -one.gap)[:WIDEST]:
        yield (
            f"| {one.seed} | {_machine(one)} | {_job(one)} | {one.ranks:,} "
            f"| {one.objective} | {percent(one.gap)} | {one.note.split(';')[0]} |"
        )


def _is_wide(one: Outcome) -> bool:
    """Whether expert groups may be as large as a rack."""
    return one.family == "racks" and "experts" in one.kind


def _gap_cells(outcomes: Sequence[Outcome]) -> str:
    gaps = [one.gap for one in outcomes]
    counts = [
        f"{sum(gap <= most + 1e-9 for gap in gaps) / len(gaps):.0%}" for most in GAPS
    ]
    return " | ".join([*counts, percent(median(gaps)), percent(max(gaps))])


def _losers(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Who is better than placer anywhere, and who was asked."""
    by_name: dict[str, list[float]] = {}
    for one in outcomes:
        for name, value in one.others.items():
            by_name.setdefault(_tool(name), []).append(value / one.value - 1)
    yield f"Others against placer; better is by more than {WORSE:.2%}:\n"
    yield "| other | placements | better than placer | best of them |"
    yield "|---|--:|--:|--:|"
    for name, above in sorted(by_name.items()):
        count = sum(share < -WORSE for share in above)
        yield f"| {name} | {len(above):,} | {count} | {min(above):+.3%} |"
    annealed = {one.key for one in outcomes if f"annealing {STARTS[0]}" in one.others}
    yield (
        f"\nAnnealing (code of its own, {TIMES_PLACER} times placer's processor time, "
        f"from placer's placement and from the best order's) was run on "
        f"{len(annealed)} of {len(outcomes)}, the slower mappers on some."
    )
    lost = [one for one in outcomes if one.better]
    for one in lost:
        better = (f"{name} by {share:.2%}" for name, share in one.better.items())
        where = f"draw {one.seed}, {_machine(one)}, {_job(one)}, {one.objective}"
        yield f"* {where}: {', '.join(better)}"


def _tool(name: str) -> str:
    """The tool, whatever its settings; orders are one."""
    known = ("annealing", "METIS", "Mt-KaHyPar", "Scotch")
    return next((tool for tool in known if name.startswith(tool)), "orders")


def _zeros(timed: Sequence[Outcome]) -> Iterator[str]:
    shares = [share for share in map(saved, timed) if share is not None]
    if not shares:
        return
    nothing = sum(share < NOTHING for share in shares)
    large = sum(share >= 0.1 for share in shares)
    yield (
        f"On {nothing} of {len(shares)} machines the best order is as good; on {large} "
        "placer saves a tenth of the step or more. Orders are the best of six here: "
        "who takes one without trying the others loses more."
    )
    none = len(timed) - len(shares)
    if none:
        yield f"On {none} machines no order keeps the rules of the job."


def _machine(one: Outcome) -> str:
    return f"{one.family}, {one.history}, {one.uplink:g}:1"


def _job(one: Outcome) -> str:
    return f"{one.kind}, {one.launcher}"
