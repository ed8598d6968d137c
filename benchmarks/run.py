"""Attempts in processes of their own, each with a limit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from threading import Timer

from benchmarks import annealing
from benchmarks.attempt import PLACER, Attempt, Spec, Task
from benchmarks.peers import metis, mt_kahypar, orders, scotch
from benchmarks.results import Row, best_of, decoded

ROOT = Path(__file__).resolve().parents[1]
PEERS = {peer.NAME: peer for peer in (orders, mt_kahypar, metis, scotch)}
# METIS takes a few hundredths of a second: it may try more often.
SEEDS_FOR_ONE = {"METIS": 5}
# These end by themselves: placer soon after its limit, annealing after a multiple of
# placer's processor time, which may be a part of the time by the clock.
GRACE = {PLACER: 2.0, annealing.NAME: 40.0}

Tell = Callable[[Attempt], None]


def specs(peers: Sequence[str], seeds: int, units: Sequence[str]) -> list[Spec]:
    """Attempts of placer and of ``peers``: every setting, contraction and seed."""
    ours = [Spec(PLACER, seed=seed) for seed in range(seeds)]
    return ours + [
        Spec(name, unit, variant, seed)
        for name in peers
        for unit in units
        for variant in PEERS[name].VARIANTS
        for seed in range(_seeds(name, seeds))
    ]


def _seeds(name: str, seeds: int) -> int:
    return 1 if name == orders.NAME else seeds * SEEDS_FOR_ONE.get(name, 1)


def rows(task: Task, tell: Tell) -> list[Row]:
    """A row for each tool and contraction of the task, a process for each."""
    found = []
    for _, group in groupby(task.specs, key=lambda spec: (spec.tool, spec.unit)):
        found += best_of(attempts(replace(task, specs=tuple(group)), tell))
    return found


def attempts(task: Task, tell: Tell) -> list[Attempt]:
    """The attempts of a task; one that ends its process costs only itself."""
    found: list[Attempt] = []
    while len(found) < len(task.specs):
        left = replace(task, specs=task.specs[len(found) :])
        for made in _until_killed(left):
            found.append(made)
            tell(made)
    return found


def _until_killed(task: Task) -> Iterator[Attempt]:
    """Attempts up to the first that takes too long or ends the process."""
    done = 0
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.attempt"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the process has no pipes")
        with suppress(BrokenPipeError):  # it ended at once
            process.stdin.write(json.dumps(asdict(task)))
            process.stdin.close()
        limit = task.time_limit
        while done < len(task.specs):
            spec = task.specs[done]
            factor = GRACE.get(spec.tool, 1.0)
            timer = Timer(limit * factor, os.killpg, (process.pid, signal.SIGKILL))
            timer.start()
            line = process.stdout.readline()
            timer.cancel()
            if not line:
                break
            yield decoded(json.loads(line))
            done += 1
        process.wait()
    if done < len(task.specs):
        killed = process.returncode == -signal.SIGKILL
        why = f"none in {limit:g} s" if killed else f"ended with {process.returncode}"
        yield Attempt(task.specs[done], status=why)


def versions() -> dict[str, str]:
    """Versions of the peers that are installed; empty text for what has none."""
    found = {name: peer.version() for name, peer in PEERS.items()}
    return {name: text for name, text in found.items() if text is not None}
