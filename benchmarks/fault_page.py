"""The page about a year of faults, and its picture, from timelines alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.fault_replay import Change, Terms, account, summary
from placer.draw.line_plot import Panel, Series, line_plot

FloatArray = npt.NDArray[np.float64]

BASE, OURS = "whole racks", "placer"
MOST_REPLICAS, MICRO_BATCHES = 24, 8
BATCH = 1024  # sequences, where the batch of a step is fixed
WEEK = 7
NOTHING = 0.0005  # a day that gains less than this gains nothing

HEAD = """\
# A year of faults

When a tray of a rack fails, a job can give up the whole rack, or go on with the trays
that are left. What is the second worth? Here a job runs through 348 days of real
faults, once under each policy, and the samples it trained are counted. A benchmark
writes the page:

```
python -m benchmarks.faults fault_trace.json --page docs/faults.md
```

The trace is `fault_trace.json` of
[stepfun-ai/InfiniteHBD-Trace](https://github.com/stepfun-ai/InfiniteHBD-Trace)
(commit 7aacdc8c, Apache-2.0; SIGCOMM 2025, arXiv 2502.03885): 584 faults of 400
servers of a pretraining cluster. It is not part of this repository.

"""

ASSUMPTIONS = """
## What is assumed

* **Machine**: 22 racks of 18 trays with 4 GPUs, links as in `azure-gb200-mlperf-v6`.
  396 servers of the trace are its trays. The trace does not say which servers shared a
  rack: each figure is the mean over random maps. The servers had eight GPUs, the trays
  have four, so faults per GPU are twice those of the trace.
* **Job**: `llama3.1-405b-mlperf-v6`, any number of replicas of 16 trays, eight
  micro-batches each. Tensor-parallel groups stay on a tray; only *whole racks* keeps a
  replica inside one rack.
* **Interruption**: any fault of a tray in use. 15 minutes pass to the first new step,
  and what was trained since the last checkpoint, one an hour, is lost (MegaScale, arXiv
  2402.15627: within 15 minutes of the crash). When repairs let one more replica in, the
  job writes a checkpoint and starts with it: 15 minutes, no work lost.
* **Model**: step times are placer's, not measured, searched with `--effort quick`.

## Policies

* **whole racks**: a replica takes 16 trays of one rack, with two spares that need no
  restart. A rack with fewer than 16 trays up holds no replica.
* **sorted hosts**: the trays that are up, by name; every 16 are a replica.
* **best fit**: a new replica takes the tightest rack that holds it, else trays of the
  emptiest racks; a failed tray is replaced by one of its rack, else of the fullest.
* **placer**: an idle tray of the rack takes over; elsewhere, and where the step would
  be 0.2 % longer than the best known, the job is placed again.
* **placer, every repair by replace**: every repair is asked of `placer.replace`, which
  moves fewer ranks. It is run on the first map only.
"""


@dataclass(frozen=True)
class Replay:
    """The timeline of a policy on a map.

    Attributes
    ----------
    map, policy : str
    changes : list of Change
    days : float
        Length of the trace.
    """

    map: str
    policy: str
    changes: list[Change]
    days: float

    def samples(self, terms: Terms) -> FloatArray:
        """Sequences kept on each day."""
        return account(self.changes, int(self.days), terms).samples

    def figures(self, terms: Terms) -> dict[str, Any]:
        """One line of the page."""
        return summary(account(self.changes, int(self.days), terms), self.changes)


def page(replays: Sequence[Replay], healthy_s: float, micro_batch_s: float) -> str:
    """The page as Markdown.

    Parameters
    ----------
    replays : sequence of Replay
    healthy_s : float, s
        The best step with every tray up.
    micro_batch_s : float, s
        What one more micro-batch adds to a step.
    """
    terms = Terms(micro_batch_s=micro_batch_s)
    drawn = [one for one in replays if one.map != "clustered"]
    lines = [
        HEAD,
        *_table(drawn, terms, healthy_s),
        "",
        "![Goodput over the year, by policy](pictures/faults.svg)",
        "",
        *_days(drawn, terms),
        "",
        *_costs(drawn, terms),
        "",
        *_clustered(replays, terms),
        ASSUMPTIONS,
        *_bounds(drawn),
    ]
    return "\n".join(lines).rstrip("\n").replace("\n\n\n", "\n\n") + "\n"


def _of(replays: Sequence[Replay], policy: str) -> list[Replay]:
    return [one for one in replays if one.policy == policy]


def _gains(replays: Sequence[Replay], policy: str, terms: Terms) -> list[float]:
    """Samples of the year over those of whole racks, minus 1, on each map."""
    base = {one.map: one.samples(terms).sum() for one in _of(replays, BASE)}
    return [
        float(one.samples(terms).sum() / base[one.map] - 1)
        for one in _of(replays, policy)
    ]


def _range(values: Sequence[float]) -> str:
    return f"{mean(values):+.1%} ({min(values):+.1%} to {max(values):+.1%})"


def _table(replays: Sequence[Replay], terms: Terms, healthy_s: float) -> Iterator[str]:
    """The policies, their means over the maps."""
    policies = list(dict.fromkeys(one.policy for one in replays))
    full = MOST_REPLICAS * MICRO_BATCHES / healthy_s * 86_400
    maps = len(_of(replays, BASE))
    yield f"Means over {maps} maps; the last column has the least and the most.\n"
    yield (
        "| policy | replicas | step | faults that stop it | starts to grow "
        "| ranks moved | work lost | time kept | samples a day | goodput "
        f"| against {BASE} |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    for policy in policies:
        rows = [one.figures(terms) for one in _of(replays, policy)]
        at = {key: mean(row[key] for row in rows) for key in rows[0]}
        gain = "" if policy == BASE else _range(_gains(replays, policy, terms))
        yield (
            f"| {policy} | {at['replicas']:.2f} | {at['step_s']:.3f} s "
            f"| {at['restarts']:.0f} | {at['grown']:.0f} | {at['moved']:,.0f} "
            f"| {at['lost_h']:.0f} h | {at['time_kept']:.1%} "
            f"| {at['samples_a_day'] / 1e6:.2f} M | {at['samples_a_day'] / full:.1%} "
            f"| {gain} |"
        )
    yield ""
    yield (
        "*Time kept* is the share of the year in which steps were made that were kept "
        "(ETTR, arXiv 2410.21680). *Goodput* compares the samples with those of the "
        f"best plan on a machine that never fails: {MOST_REPLICAS} replicas, "
        f"{healthy_s:.3f} s a step."
    )


def _days(replays: Sequence[Replay], terms: Terms) -> Iterator[str]:
    """What single days gain, those that do not among them."""
    base = {one.map: one.samples(terms) for one in _of(replays, BASE)}
    ours = {one.map: one.samples(terms) for one in _of(replays, OURS)}
    gain = np.array([ours[name] / base[name] - 1 for name in base])
    none = gain < NOTHING
    yield "## Days\n"
    yield (
        f"Of {gain.size:,} days on all maps, {none.sum():,} ({none.mean():.1%}) gain "
        f"nothing against {BASE}: the larger job meets a fault that the other is "
        "spared, or stops to grow.\n"
    )
    yield "| day | gain of placer in samples |"
    yield "|---|--:|"
    names = {0: "worst", 5: "1 in 20 is below", 50: "median", 95: "1 in 20 is above"}
    for percent, name in (names | {100: "best"}).items():
        yield f"| {name} | {np.percentile(gain, percent):+.1%} |"


def _costs(replays: Sequence[Replay], terms: Terms) -> Iterator[str]:
    """The gains when interruptions cost more or less, or the batch is fixed."""
    yield "## Other costs\n"
    yield "| checkpoint | restart | batch | sorted hosts | best fit | placer |"
    yield "|--:|--:|---|--:|--:|--:|"
    for batch in (0, BATCH):
        for checkpoint, restart in ((30, 5), (120, 30)):
            own = replace(
                terms,
                checkpoint_s=60.0 * checkpoint,
                restart_s=60.0 * restart,
                batch=batch,
            )
            cells = [
                _range(_gains(replays, policy, own))
                for policy in ("sorted hosts", "best fit", OURS)
            ]
            kind = f"{batch:,} sequences" if batch else "8 a replica"
            yield (
                f"| {checkpoint} min | {restart} min | {kind} | {' | '.join(cells)} |"
            )
    yield ""
    yield (
        "With a fixed batch replicas take uneven numbers of micro-batches and the "
        "fullest sets the step; one micro-batch more adds "
        f"{terms.micro_batch_s * 1e3:.0f} ms, as the model has it for whole racks."
    )


def _clustered(replays: Sequence[Replay], terms: Terms) -> Iterator[str]:
    """The map on which servers that fail often are neighbours."""
    own = [one for one in replays if one.map == "clustered"]
    gains = {
        policy: _gains(own, policy, terms)[0]
        for policy in dict.fromkeys(one.policy for one in own)
        if policy != BASE
    }
    shown = ", ".join(f"{policy} {gain:+.1%}" for policy, gain in gains.items())
    replicas = _of(own, BASE)[0].figures(terms)["replicas"]
    yield "## Faults side by side\n"
    yield (
        "On the map that puts the servers that fail most often into the same racks, "
        f"{BASE} have {replicas:.2f} replicas; against them: {shown}."
    )


def _bounds(replays: Sequence[Replay]) -> Iterator[str]:
    """How far steps are from their lower bounds."""
    gaps: list[tuple[float, float]] = []
    for one in _of(replays, OURS):
        ends = [*(change.day for change in one.changes[1:]), one.days]
        gaps += [
            (1 - change.bound_s / change.step_s, end - change.day)
            for change, end in zip(one.changes, ends, strict=True)
        ]
    value, weight = np.array(gaps).T
    within = weight[value <= 0.01].sum() / weight.sum()
    yield "\n## How good the placements are\n"
    yield (
        f"The step of placer is proved to be within {value.max():.1%} of the least "
        f"possible at any time, on average within "
        f"{np.average(value, weights=weight):.1%}, and within 1 % for {within:.0%} of "
        "the time. Whether the rest is the placement's or the bound's is not known."
    )


def picture(replays: Sequence[Replay], healthy_s: float) -> str:
    """Goodput week by week as an SVG document, the mean over the maps."""
    terms = Terms()
    full = MOST_REPLICAS * MICRO_BATCHES / healthy_s * 86_400
    drawn = [one for one in replays if one.map != "clustered"]
    series, over = [], []
    weekly: dict[str, FloatArray] = {}
    for policy in (OURS, "sorted hosts", "best fit", BASE):
        own = np.mean([one.samples(terms) for one in _of(drawn, policy)], axis=0)
        weeks = own[: len(own) // WEEK * WEEK].reshape(-1, WEEK).mean(axis=1) / full
        weekly[policy] = weeks
        series.append(Series(policy, _points(weeks)))
    for policy in (OURS, "sorted hosts", "best fit"):
        gain = np.maximum(weekly[policy] / weekly[BASE] - 1, 0.0)
        over.append(Series(policy, _points(gain)))
    more = f"samples more than {BASE}, by week"
    panels = [
        Panel(title, tuple(of), _percent, "day", lambda day: f"{day:.0f}")
        for title, of in (("goodput, by week", series), (more, over))
    ]
    return line_plot(panels, "A year of faults, by policy")


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _points(weeks: FloatArray) -> tuple[tuple[float, float | None, str], ...]:
    return tuple(
        (float(index * WEEK), float(value), f"week {index + 1}: {value:.1%}")
        for index, value in enumerate(weeks)
    )
