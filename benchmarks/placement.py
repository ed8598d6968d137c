"""The placement benchmark, placer beside its peers: ``python -m benchmarks.placement``.

Every tool gets the same machine and job, every answer is scored by the same model, and
each kind of attempt runs in a process of its own. Peers that are not installed are
said to be. With ``--random N`` the machines are N fragmented ones from
``benchmarks.generate``, and the exit code is 1 if placer is worse than anything on any.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import command, curve, drawn, results, worth
from benchmarks.attempt import DONE, Attempt, Task
from benchmarks.cases import NAMES, RANDOM, case
from benchmarks.page import Beside, page
from benchmarks.peers.problem import UNITS, unit_size
from benchmarks.results import Report, Result, best_of
from benchmarks.run import PEERS, attempts, rows, specs, versions
from benchmarks.tables import case_table, gap_table, label, percent, random_table, shown
from placer.job.edges import hop_edges

DEFAULT = {"hop-cost": "A,Araw,B,C,D,E,H", "time": "B,Braw"}


def measured(
    name: str, objective: str, peers: Sequence[str], seeds: int, limit: float
) -> Result:
    """All rows of one case; a random machine gets one process for all."""
    topology, job = case(name, objective)
    sizes = {unit: unit_size(job.parallelism, unit) for unit in UNITS}
    # A unit as large as a smaller one is the same question.
    units = [u for i, u in enumerate(UNITS) if sizes[u] not in list(sizes.values())[:i]]
    task = Task(name, objective, limit, specs(peers, seeds, units))
    is_random = name.startswith(RANDOM)
    found = best_of(attempts(task, tell)) if is_random else rows(task, tell)
    weight = sum(axis.weight * len(axis.edges) for axis in hop_edges(job))
    return Result(
        name,
        objective,
        job.world_size,
        topology.num_gpus,
        topology.num_nodes,
        {axis: job.parallelism.size(axis) for axis in ("tp", "cp", "ep", "dp", "pp")},
        dict(job.weights),
        weight * topology.tiers[0].distance,
        found,
    )


def tell(made: Attempt) -> None:
    """Say on standard error what came of an attempt."""
    spec = made.spec
    setting = f"{label(spec)} {spec.variant} seed {spec.seed}"
    came = f"{made.value:,.6g} in {made.wall_s:.2f} s" if made.status == DONE else ""
    print(f"  {setting}: {came or made.status}", file=sys.stderr, flush=True)


def summary(report: Report) -> Iterator[str]:
    """The tables of a run, as text."""
    for objective in NAMES:
        for result in report.of(objective):
            yield f"\n{objective}, {result.case}:\n"
            yield from case_table(result)
    random = report.of("hop-cost", random=True)
    if random:
        yield "\nrandom machines:\n"
        yield from random_table(random)
        yield ""
        yield from gap_table(random)
    for result in report.results:
        for row in result.better():
            value, ours = shown(result, row.best.value), result.ours.value
            yield (
                f"worse than {label(row.best.spec)} on {result.case}: "
                f"{shown(result, ours)}, not {value} (gap {percent(result.gap(ours))})"
            )


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser("python -m benchmarks.placement")
    parser.add_argument("--objective", choices=tuple(NAMES), default="hop-cost")
    parser.add_argument("--instances", help="names, with commas; empty for none")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="machines")
    parser.add_argument(
        "--peers", default=",".join(PEERS), help=f"of {','.join(PEERS)} (default: all)"
    )
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=60.0, help="s an attempt")
    parser.add_argument("--json", type=Path, help="results; earlier ones are kept")
    parser.add_argument("--page", type=Path, help="write the page of all results here")
    parser.add_argument(
        "--commands", type=Path, help="rows of benchmarks.command, for the page"
    )
    parser.add_argument("--drawn", type=Path, help="of benchmarks.drawn, for the page")
    parser.add_argument("--curve", type=Path, help="of benchmarks.curve, for the page")
    options = parser.parse_args(arguments)
    if options.random and options.objective != "hop-cost":
        parser.error("random machines have hop-cost jobs only")
    given = options.instances
    if given is None:
        given = "" if options.random else DEFAULT[options.objective]
    options.names = [name for name in given.split(",") if name]
    options.names += [f"{RANDOM}{seed}" for seed in range(options.random)]
    options.peers = [name for name in options.peers.split(",") if name]
    for name in options.names:
        if name not in NAMES[options.objective] and not name.startswith(RANDOM):
            known = ", ".join(NAMES[options.objective])
            parser.error(f"there is no instance {name}; known: {known}")
    for name in options.peers:
        if name not in PEERS:
            parser.error(f"there is no peer {name}; known: {', '.join(PEERS)}")
    return options


def write_page(report: Report, options: argparse.Namespace) -> None:
    """The page, and its pictures beside it."""
    beside = Beside(
        command.read(options.commands) if options.commands else [],
        drawn.read(options.drawn) if options.drawn else [],
        curve.read(options.curve) if options.curve else [],
    )
    options.page.write_text(page(report, beside))
    pictures = options.page.parent / "pictures"
    pictures.mkdir(exist_ok=True)
    timed = [one for one in beside.drawn if one.objective == "time"]
    if timed:
        (pictures / "worth.svg").write_text(worth.picture(timed))
    if beside.points:
        (pictures / "curve.svg").write_text(curve.picture(beside.points))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; 1 if placer is worse than a peer on a random machine."""
    options = options_of(arguments)
    report = Report(
        f"{os.cpu_count()} shared cores", versions(), options.time_limit, []
    )
    if options.json and options.json.exists():
        report = report.with_earlier(results.read(options.json))
    made: list[Result] = []
    for name in options.names:
        print(f"{name}:", file=sys.stderr, flush=True)
        made.append(
            measured(
                name,
                options.objective,
                options.peers,
                options.seeds,
                options.time_limit,
            )
        )
        one = Report(report.computer, report.versions, report.time_limit, made[-1:])
        report = one.with_earlier(report)
        if options.json:
            results.write(report, options.json)
    print(*summary(Report("", {}, options.time_limit, made)), sep="\n")
    if options.page:
        write_page(report, options)
    return int(any(r.better() for r in made if r.case.startswith(RANDOM)))


if __name__ == "__main__":
    sys.exit(main())
