"""What the model is not sure of, each with how far it may be off, and why.

The table of ``docs/cost-model.md`` says the same (a test compares the two). Rates and
latencies are drawn by kind of link: NVLink, and each line rate of the network. Fixed
time is left out: it is the same for all placements of a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from statistics import NormalDist

import numpy as np

from placer.assumed import HARDWARE, LINKS
from placer.base.arrays import FloatArray, IntArray
from placer.cost.fabric import Fabric
from placer.cost.network import PlacedNetwork
from placer.cost.step import StepModel, step_times
from placer.job.model import Job
from placer.topology.model import Topology


@dataclass(frozen=True)
class Uncertain:
    """One sort of input."""

    name: str
    # Standard deviation of the logarithm of a factor; of what hides, how far it may lie
    # from 1, and of the oversubscription above 1, all alike likely.
    spread: float
    source: str


RATE = Uncertain(
    "rate of links",
    0.05,
    "rms error of the bus bandwidths of 1 GB and more in docs/evidence/validation.md",
)
LATENCY = Uncertain(
    "latency of hops",
    0.42,
    "NCCL's own model has 2.7 to 14 us for a step of the network and 0.6 to 3.4 over "
    "NVLink, by protocol: 2.3 times either way, taken as two deviations",
)
MEASURED = Uncertain(
    "time of a micro-batch, measured",
    0.005,
    "half of the job's step_error; at least half of the usual interval of a fit in "
    "docs/evidence/validation.md, 1 %",
)
STATED = Uncertain(
    "time of a micro-batch, from a rate",
    0.05,
    "fits of two models in FP8 on H100, 929 and 844 TFLOP/s in "
    "docs/evidence/validation.md: 5 % either way",
)
HIDES = Uncertain(
    "time that hides traffic",
    0.2,
    "less: NCCL runs on 16 to 32 of 132 to 148 multiprocessors, which then compute "
    "nothing; more: exposed tp, 15 % of the work of Azure's run in "
    "docs/evidence/validation.md, is not counted as cover",
)
OVERSUBSCRIPTION = Uncertain(
    "oversubscription, where it is assumed",
    1.0,
    "an input: a fabric that nobody described is built 1:1 or 2:1",
)
TABLE = (RATE, LATENCY, MEASURED, STATED, HIDES, OVERSUBSCRIPTION)


def links_are_assumed(topology: Topology) -> bool:
    """Whether nobody has described the links of a machine."""
    return any(each.key in (HARDWARE, LINKS) for each in topology.assumed)


def drawn_times(
    model: StepModel, placed: Sequence[IntArray], count: int, seed: int, *, thin: bool
) -> FloatArray:
    """Seconds of steps with other inputs, so often; shape (count, placements).

    ``placed``: the GPU of every rank, shape (R,), of each placement. The inputs are a
    function of the seed. With ``thin`` the oversubscription is assumed, and drawn too.
    Each input falls once into each of ``count`` equally likely ranges, so that few
    draws spread as many would (McKay, Beckman and Conover 1979, Latin hypercube).
    """
    rng = np.random.default_rng(seed)
    size = len(_kinds(model.fabric)) * 2 + 3
    columns = [(rng.permutation(count) + 0.5) / count for _ in range(size)]
    drawn = (model_at(model, row, thin=thin) for row in np.stack(columns, axis=1))
    networks = [PlacedNetwork(model.fabric, each) for each in placed]
    for network in networks:
        model.step_on(network)  # from now on it knows the rings, which all draws share
    steps = (one.step_on(at.at(one.fabric)) for one in drawn for at in networks)
    return step_times(steps).reshape(count, -1)


def model_at(model: StepModel, shares: FloatArray, *, thin: bool) -> StepModel:
    """The model at these quantiles of its inputs.

    ``shares``: each from 0 to 1: rate and latency of each kind of link, then work, what
    hides, and oversubscription. ``thin``: whether the last counts.
    """
    *of_links, work, hides, over = shares.tolist()
    fabric = _fabric_at(model.fabric, of_links, over if thin else 0.0)
    return StepModel(
        model.topology,
        model.job,
        fabric,
        slower=_factor(_work_spread(model.job), work),
        hides=1.0 + HIDES.spread * (2.0 * hides - 1.0),
        content=model.content,
    )


def _factor(spread: float, share: float) -> float:
    """The factor at a quantile."""
    return exp(spread * NormalDist().inv_cdf(share))


def _work_spread(job: Job) -> float:
    """How sure the time of a micro-batch is; that of roles is theirs."""
    compute = job.roles[0].job.compute if job.roles else job.compute
    if not compute.micro_batch_time:
        return STATED.spread
    return max(MEASURED.spread, compute.step_error / 2)


def _kinds(fabric: Fabric) -> list[list[int]]:
    """The tiers of each kind of link: those of NVLink, then those of each line rate."""
    found: dict[float, list[int]] = {}
    for t, tier in enumerate(fabric.topology.tiers):
        kind = 0.0 if t <= fabric.scale_up_tier else tier.bandwidth
        found.setdefault(kind, []).append(t)
    return [*found.values()]


def _fabric_at(fabric: Fabric, shares: list[float], over: float) -> Fabric:
    """The fabric at these quantiles."""
    kinds = _kinds(fabric)
    rate, latency = np.ones(fabric.num_tiers), np.ones(fabric.num_tiers)
    for tiers, of_rate, of_latency in zip(
        kinds, shares[::2], shares[1::2], strict=True
    ):
        rate[tiers] = _factor(RATE.spread, of_rate)
        latency[tiers] = _factor(LATENCY.spread, of_latency)
    topology = fabric.topology
    if over:
        times = 1.0 + OVERSUBSCRIPTION.spread * over
        thinner = tuple(
            replace(tier, oversubscription=tier.oversubscription * times)
            for tier in topology.tiers
        )
        topology = replace(topology, tiers=thinner)
    return replace(
        fabric,
        topology=topology,
        bandwidth=fabric.bandwidth * rate,
        latency=fabric.latency * latency,
        detour=fabric.detour * latency[0],
        links={
            t: replace(links, capacity=links.capacity * rate[t])
            for t, links in fabric.links.items()
        },
    )
