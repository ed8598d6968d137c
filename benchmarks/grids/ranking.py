"""How placer ranks measured layouts: ``python -m benchmarks.grids.ranking``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.grids.series import (
    HELD_OUT,
    START_TFLOPS,
    Layout,
    Series,
    layouts_of,
    measured,
)
from placer.calibrate.links import with_efficiencies
from placer.cost.footprint.stages import footprint
from placer.cost.step import StepModel
from placer.job.work import layers_again
from placer.topology.read import parse_topology

if TYPE_CHECKING:
    import numpy.typing as npt

    from placer.topology.model import Topology

A100 = 80e9  # bytes
# Bus bandwidths of 8 A100 from 1 MB to 8 GB (Azure/AI-benchmarking-guide 8fd0c6e,
# Azure_Results/ND_A100_v4_results.md) as a ring's rate and latency, by least squares of
# the logarithm.
_MACHINE = """
format: placer/topology
version: 1
name: grid
tiers:
  - {{name: node, size: {size}, bandwidth: {node}, latency: 4.1us,
      scale_up: true, efficiency: 0.675}}
  - {{name: cluster, bandwidth: {cluster}, latency: 8us}}
layout: "cluster:1 node:{nodes}"
"""


@dataclass(frozen=True)
class Ranking:
    """One series, predicted.

    Attributes
    ----------
    series : Series
    layouts : list of Layout
        Those that ran.
    seconds, predicted : ndarray, shape (layouts,), s
        Of a sample.
    tflops : float
        The rate at which the median of both agrees.
    """

    series: Series
    layouts: list[Layout]
    seconds: npt.NDArray[np.float64]
    predicted: npt.NDArray[np.float64]
    tflops: float

    @property
    def correlation(self) -> float:
        """Spearman's rank correlation."""
        return spearman(self.seconds, self.predicted)

    @property
    def regret(self) -> float:
        """How much slower the layout is that placer likes best than the fastest."""
        return float(self.seconds[self.predicted.argmin()] / self.seconds.min() - 1)

    @property
    def place_of_fastest(self) -> int:
        """At which place, from 1, placer has the fastest."""
        mine = self.predicted[self.seconds.argmin()]
        return 1 + int((self.predicted < mine).sum())

    @property
    def scatter(self) -> float:
        """Standard deviation of the logarithm of predicted over measured."""
        return float(np.log(self.predicted / self.seconds).std())

    @property
    def memory(self) -> tuple[int, int, int]:
        """Layouts that ran out of memory; of them, that placer would refuse.

        The third counts what ran and would be refused.
        """
        refused = [_needs(layout) > A100 for layout in self.series.layouts]
        ended = [not isfinite(layout.seconds) for layout in self.series.layouts]
        both = sum(a and b for a, b in zip(refused, ended, strict=True))
        return sum(ended), both, sum(refused) - both


def _needs(layout: Layout) -> float:
    needs = footprint(layout.job)
    return needs.total if needs else 0.0


def ranked(series: Series, share: Mapping[str, float] | None = None) -> Ranking:
    """The series, predicted at the rate at which the medians agree.

    ``share`` is what tiers reach, in what the machine says.
    """
    return at_rate(series, agreed_rate([series], share), share)


def agreed_rate(
    several: Sequence[Series], share: Mapping[str, float] | None = None
) -> float:
    """The rate at which the median of all steps agrees, 1e12 FLOP/s."""
    low, high = START_TFLOPS / 3, START_TFLOPS * 3
    for _ in range(7):
        rate = (low * high) ** 0.5
        found = [at_rate(series, rate, share) for series in several]
        off = np.concatenate([np.log(one.predicted / one.seconds) for one in found])
        if np.median(off) > 0:
            low = rate
        else:
            high = rate
    return rate


def at_rate(
    series: Series, tflops: float, share: Mapping[str, float] | None = None
) -> Ranking:
    """The series, predicted at such a rate of its products."""
    ran = [layout for layout in series.layouts if isfinite(layout.seconds)]
    seconds = np.array([layout.seconds / layout.samples for layout in ran])
    machine = with_efficiencies(machine_of(series), share or {})
    predicted = [predicted_s(machine, series, layout, tflops) for layout in ran]
    return Ranking(series, ran, seconds, np.array(predicted), tflops)


def machine_of(series: Series) -> Topology:
    """The machine of a series as its sources have it."""
    machine = {"size": "8"} | dict(series.machine)
    nodes = -(-series.gpus // int(machine["size"]))
    return parse_topology(_MACHINE.format(nodes=nodes, **machine), series.title)


def predicted_s(
    machine: Topology, series: Series, layout: Layout, tflops: float
) -> float:
    """Seconds of a sample that the model gives, ranks along the nodes."""
    job = layout.at_rate(tflops)
    model = StepModel(machine, job)
    slab = model.volumes.tp_slab
    if series.cuts_messages:
        message = slab / job.parallelism.tp
        model.volumes = replace(model.volumes, pp_message=message)
    if series.gate_apart and not job.tensor_parallel.sequence:
        # One all-reduce more beside two a pass.
        more = slab / (2 * (2 + layers_again(job)))
        model.volumes = replace(model.volumes, tp_slab=slab + more)
    return model.step(np.arange(job.world_size)).step_time_s / layout.samples


def spearman(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Spearman's rank correlation; equal values share the mean of their ranks."""
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    less = (values[:, None] > values[None, :]).sum(axis=1)
    same = (values[:, None] == values[None, :]).sum(axis=1)
    return np.asarray(less + (same + 1) / 2, dtype=np.float64)


def row(found: Ranking) -> str:
    """A line of the table."""
    ended, refused, wrongly = found.memory
    memory = f"{refused} of {ended}" if ended else ""
    return (
        f"| {found.series.title} | {found.series.gpus} | {len(found.layouts)} "
        f"| {found.correlation:.2f} | {found.regret:.1%} | {found.place_of_fastest} "
        f"| {found.scatter:.0%} | {memory} | {wrongly} |"
    )


def worst(found: Ranking, count: int) -> list[str]:
    """The layouts that are furthest off, as lines."""
    off = np.log(found.predicted / found.seconds)
    lines = []
    for index in np.argsort(-abs(off))[:count]:
        job, axes = found.layouts[index].job, found.layouts[index].job.parallelism
        lines.append(
            f"  tp {axes.tp} pp {axes.pp} dp {axes.dp} b {job.micro_batch} "
            f"{job.memory.recompute}: {found.layouts[index].seconds:.2f} s measured, "
            f"{np.exp(off[index]) - 1:+.0%}"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0."""
    parser = argparse.ArgumentParser("python -m benchmarks.grids.ranking")
    parser.add_argument("--layouts", type=Path, help="clone of Aleph-Alpha's layouts")
    parser.add_argument("--earlier", action="store_true", help="its older kernels")
    parser.add_argument("--held-out", action="store_true", help="grids found later")
    parser.add_argument("--worst", type=int, default=0, help="layouts furthest off")
    options = parser.parse_args(arguments)
    if options.held_out:
        several = measured(HELD_OUT)
    elif options.earlier:
        several = layouts_of(options.layouts, earlier=True)
    else:
        several = measured() + (layouts_of(options.layouts) if options.layouts else [])
    print(
        "| model | GPUs | layouts | rank | regret | fastest | scatter | OOM | refused |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for series in several:
        found = ranked(series)
        print(row(found))
        for line in worst(found, options.worst):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
