"""A year of real faults, replayed: ``python -m benchmarks.faults TRACE``.

A job runs through every fault of the trace on random maps of its servers to racks,
under policies that pick its trays; the page says what each policy trained.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import islice, repeat
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.fault_page import Replay, page, picture
from benchmarks.fault_placer import Best, Left, Placer, all_left, best, best_of_all
from benchmarks.fault_policies import BestFit, Cluster, SortedHosts, WholeRacks
from benchmarks.fault_replay import (
    IntArray,
    Policy,
    Trace,
    clustered_map,
    random_map,
    read_trace,
    timeline,
)
from placer.base.threads import granted_cores

if TYPE_CHECKING:
    from collections.abc import Iterable

SAMPLE = Path("faults") / "fault_trace.json"
PICTURE = Path("pictures") / "faults.svg"
# Name and servers of a map, and the best placement of each state that it runs through.
Task = tuple[str, Trace, IntArray, dict[Left, Best]]


@cache
def cluster() -> Cluster:
    """The cluster, read once in each process."""
    return Cluster.of_presets()


def searched(state: Left, count: int) -> Best:
    """The best placement of so many replicas on what one state has left."""
    return best(cluster(), state, count)


def replayed(task: Task) -> list[Replay]:
    """The timelines of all policies on one map."""
    machine, known = cluster(), task[-1]
    policies: list[Policy] = [
        WholeRacks(machine),
        SortedHosts(machine),
        BestFit(machine),
        Placer(machine, known),
    ]
    return [_timeline(task, one) for one in policies]


def repaired(task: Task) -> Replay:
    """The timeline of the policy that asks for every repair."""
    return _timeline(task, Placer(cluster(), task[-1], repairs=True))


def _timeline(task: Task, policy: Policy) -> Replay:
    name, trace, servers, _ = task
    return Replay(name, policy.name, timeline(trace, servers, policy), trace.days)


def replays(trace: Trace, maps: int, asked: int) -> tuple[list[Replay], float]:
    """Timelines on ``maps`` random maps and a clustered one, and the best rate's step.

    On the first ``asked`` maps there is a policy more, which asks for every repair. It
    takes long and one core, so it starts before other maps are searched.
    """
    servers = {str(seed): random_map(trace, seed) for seed in range(maps)}
    servers["clustered"] = clustered_map(trace)
    first = dict(islice(servers.items(), asked))
    with ProcessPoolExecutor(granted_cores()) as pool:

        def search(batch: Sequence[Left], count: int) -> Iterable[Best]:
            found = list(pool.map(searched, batch, repeat(count)))
            tell(f"{count} replicas: {len(batch)} shapes of the racks placed")
            return found

        early = best_of_all(all_left(trace, first.values()), search)
        repairs = [
            pool.submit(repaired, (name, trace, one, early))
            for name, one in first.items()
        ]
        known = best_of_all(all_left(trace, servers.values()), search, early)
        tasks = [
            (
                name,
                trace,
                one,
                {state: known[state] for state in all_left(trace, [one])},
            )
            for name, one in servers.items()
        ]
        found = []
        for number, some in enumerate(pool.map(replayed, tasks), start=1):
            found += some
            tell(f"{number} of {len(tasks)} maps replayed")
        for number, one in enumerate(repairs, start=1):
            found.append(one.result())
            tell(f"{number} of {len(repairs)} maps replayed with every repair asked")
    healthy = max(known, key=sum)
    return found, known[healthy].step_s


def tell(text: str) -> None:
    """How far the run is, as it takes minutes."""
    print(text, file=sys.stderr, flush=True)


def main(words: Sequence[str] | None = None) -> int:
    """Replay, and write the page and its picture; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.faults")
    samples = os.environ.get("PLACER_SAMPLES")
    parser.add_argument(
        "trace",
        type=Path,
        nargs="?" if samples else None,
        default=Path(samples) / SAMPLE if samples else None,
        help="fault_trace.json; by default that of $PLACER_SAMPLES",
    )
    parser.add_argument("--maps", type=int, default=20)
    parser.add_argument(
        "--repaired",
        type=int,
        default=1,
        help="maps on which replace makes all repairs",
    )
    parser.add_argument("--page", type=Path, help="where the page goes, else to stdout")
    options = parser.parse_args(words)
    start = perf_counter()
    found, healthy_s = replays(
        read_trace(options.trace), options.maps, options.repaired
    )
    seconds = perf_counter() - start
    text = page(found, healthy_s, cluster().micro_batch_s)
    if options.page is None:
        print(text, end="")
    else:
        options.page.write_text(text)
        (options.page.parent / PICTURE).write_text(picture(found, healthy_s))
    print(f"{seconds:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
