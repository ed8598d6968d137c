"""Faults of a real cluster on a map of racks, and what a run makes of them.

A replay has two parts that know nothing of each other. A policy answers every event
with the trays of each replica (`timeline`), and what is lost between the answers is
counted afterwards (`account`), so that other costs of restarts need no other replay.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from pathlib import Path

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

SERVERS, RACKS, TRAYS = 400, 22, 18  # of the trace, and the machine they are put on
REPLICA = 16  # trays
GPUS = 4  # of a tray
DAY_S = 86_400.0


@dataclass(frozen=True)
class Trace:
    """Faults of servers.

    Attributes
    ----------
    events : tuple of (float, tuple of (int, int))
        Day, and for each server of an event +1 where a fault starts, -1 where one ends.
    faults : tuple of int
        How many faults each server has, shape (400,).
    """

    events: tuple[tuple[float, tuple[tuple[int, int], ...]], ...]
    faults: tuple[int, ...]

    @property
    def days(self) -> float:
        """Day of the last event."""
        return self.events[-1][0]


def read_trace(path: Path) -> Trace:
    """The trace of a file: a list of ``node_id``, ``event_time``, ``event_type``."""
    rows = sorted(json.loads(path.read_text()), key=itemgetter("event_time"))
    names = dict.fromkeys(row["node_id"] for row in rows)
    number = {name: index for index, name in enumerate(names)}
    signs = {"fault_start": 1, "fault_end": -1}
    events = tuple(
        (day, tuple((number[r["node_id"]], signs[r["event_type"]]) for r in of_day))
        for day, of_day in groupby(rows, itemgetter("event_time"))
    )
    started = Counter(s for _, hits in events for s, sign in hits if sign > 0)
    return Trace(events, tuple(started[server] for server in range(SERVERS)))


def random_map(trace: Trace, seed: int) -> IntArray:
    """Tray of each server, -1 for those left out, which never fail; shape (400,)."""
    rng = np.random.default_rng(seed)
    healthy = np.flatnonzero(np.array(trace.faults) == 0)
    left_out = rng.choice(healthy, SERVERS - RACKS * TRAYS, replace=False)
    servers = np.setdiff1d(np.arange(SERVERS), left_out)
    return _on_trays(rng.permutation(servers))


def clustered_map(trace: Trace) -> IntArray:
    """The same with the servers that fail most often side by side."""
    by_faults = np.argsort(-np.array(trace.faults), kind="stable")
    return _on_trays(by_faults[: RACKS * TRAYS])


def _on_trays(servers: IntArray) -> IntArray:
    tray = np.full(SERVERS, -1)
    tray[servers] = np.arange(len(servers))
    return tray


@dataclass(frozen=True, eq=False)
class Seats:
    """What a policy answers.

    Attributes
    ----------
    trays : ndarray, shape (replicas, 16)
        Tray of every node of every replica, racks one after the other.
    step_s, bound_s : float
        Step time, and what it is at least; 0 where that is not known.
    moved : int
        Ranks that were elsewhere before, without those of new replicas.
    """

    trays: IntArray
    step_s: float
    bound_s: float = 0.0
    moved: int = 0


class Policy(Protocol):
    """Which trays a job gets."""

    @property
    def name(self) -> str:
        """What the page calls it."""
        ...

    def most(self, up: BoolArray) -> int:
        """How many replicas it can place on the trays that are up."""
        ...

    def seats(self, before: Seats | None, up: BoolArray) -> Seats:
        """The trays after an event."""
        ...


@dataclass(frozen=True)
class Change:
    """A start of the job.

    Attributes
    ----------
    day : float
    failed : bool
        Whether a tray in use failed; otherwise the job starts, or grows after a repair.
    replicas, moved : int
    step_s, bound_s : float
    """

    day: float
    failed: bool
    replicas: int
    moved: int
    step_s: float
    bound_s: float


def states(trace: Trace, tray_of_server: IntArray) -> Iterator[BoolArray]:
    """Which trays are up, before the first event and after each; shape (396,)."""
    open_faults = np.zeros(RACKS * TRAYS, dtype=np.int64)
    yield open_faults == 0
    for _, hits in trace.events:
        for server, sign in hits:
            if tray_of_server[server] >= 0:
                open_faults[tray_of_server[server]] += sign
        yield open_faults == 0


def timeline(trace: Trace, tray_of_server: IntArray, policy: Policy) -> list[Change]:
    """Every start of a job under ``policy``, the first on day 0."""
    days = [0.0, *(day for day, _ in trace.events)]
    now: Seats | None = None
    found = []
    for day, up in zip(days, states(trace, tray_of_server), strict=True):
        failed = now is not None and not up[now.trays].all()
        if now is None or failed or policy.most(up) > len(now.trays):
            now = policy.seats(now, up)
            found.append(_change(day, failed, now))
    return found


def _change(day: float, failed: bool, seats: Seats) -> Change:
    replicas = len(seats.trays)
    return Change(day, failed, replicas, seats.moved, seats.step_s, seats.bound_s)


@dataclass(frozen=True)
class Terms:
    """What an interruption costs.

    Attributes
    ----------
    checkpoint_s : float
        Between two checkpoints; the first comes that long after a start.
    restart_s : float
        From a fault to the first new step: finding it, starting, loading.
    batch : int
        Sequences of a step of the whole job; 0 for a number that grows with the
        replicas, ``micro_batches`` each.
    micro_batches : int
    micro_batch_s : float
        What one more of them adds to a step.
    """

    checkpoint_s: float = 3600.0
    restart_s: float = 900.0
    batch: int = 0
    micro_batches: int = 8
    micro_batch_s: float = 0.0

    def rate(self, change: Change) -> float:
        """Sequences a second; with a fixed batch the fullest replica sets the step."""
        if not self.batch:
            return change.replicas * self.micro_batches / change.step_s
        most = -(-self.batch // change.replicas)
        return self.batch / (
            change.step_s + (most - self.micro_batches) * self.micro_batch_s
        )


@dataclass(frozen=True, eq=False)
class Account:
    """What a year comes to.

    Attributes
    ----------
    samples : ndarray, shape (days,)
        Sequences trained and kept; what a fault undoes is taken from its day.
    replicas, step_s : ndarray, shape (days,)
        Their mean over each day, whether the job runs or restarts.
    lost_s, productive_s : float
        Seconds of work done twice, and of work kept.
    """

    samples: FloatArray
    replicas: FloatArray
    step_s: FloatArray
    lost_s: float
    productive_s: float


def account(changes: Sequence[Change], until: float, terms: Terms) -> Account:
    """The books of a timeline up to day ``until``, a whole number of them.

    A job that grows writes a checkpoint first, so that it loses none of its work.
    """
    days = int(until)
    samples, replicas, step_s = np.zeros(days), np.zeros(days), np.zeros(days)
    lost, productive = 0.0, 0.0
    ends = [*changes[1:], None]
    for change, after in zip(changes, ends, strict=True):
        if change.day >= until:
            break
        after = after if after and after.day < until else None
        end = after.day if after else until
        resumed = min(change.day + terms.restart_s / DAY_S, end)
        rate = terms.rate(change)
        for day, share in _shares(resumed, end):
            samples[day] += rate * share * DAY_S
        for day, share in _shares(change.day, end):
            replicas[day] += share * change.replicas
            step_s[day] += share * change.step_s
        ran = (end - resumed) * DAY_S
        undone = ran % terms.checkpoint_s if after and after.failed else 0.0
        if undone:
            samples[min(int(end), days - 1)] -= rate * undone
        lost += undone
        productive += ran - undone
    return Account(samples, replicas, step_s, lost, productive)


def _shares(start: float, end: float) -> Iterator[tuple[int, float]]:
    """The days that a span of time touches, and how much of each."""
    if start < end:
        inner = range(int(start) + 1, int(np.ceil(end)))
        for left, right in pairwise([start, *inner, end]):
            yield int(left), right - left


def summary(account: Account, changes: Sequence[Change]) -> dict[str, Any]:
    """One line of the page, as plain numbers."""
    days = len(account.samples)
    return {
        "replicas": float(account.replicas.mean()),
        "step_s": float(account.step_s.mean()),
        "restarts": sum(change.failed for change in changes),
        "grown": sum(not change.failed for change in changes) - 1,
        "moved": sum(change.moved for change in changes),
        "lost_h": account.lost_s / 3600,
        "samples_a_day": float(account.samples.sum() / days),
        "time_kept": account.productive_s / (days * DAY_S),
    }
