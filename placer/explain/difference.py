"""What one placement of a job saves beside another, and how sure that is.

The noise of a time is not the noise of a difference: two placements of a job share
their work, the rates of their links and most of their traffic. So what the model is not
sure of is drawn for both at once, and what is left apart is what it does not know of
the difference. Rates and latencies are drawn by kind of link: NVLink, and each line
rate of the network. Fixed time is left out: it is the same for all placements of a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from placer.assumed import HARDWARE, LINKS
from placer.base.arrays import FloatArray, IntArray
from placer.cost import JITTER
from placer.cost.fabric import Fabric
from placer.cost.network import PlacedNetwork
from placer.cost.step import StepModel, step_times
from placer.job.model import Job
from placer.topology.model import Topology

# How far each sort of input may be off; docs/cost-model.md says the same, and why (a
# test compares the two). Standard deviations of the logarithm of a factor; of what
# hides, how far it may lie from 1, and of the oversubscription above 1, all alike
# likely.
SPREADS = {
    "rate of links": 0.05,
    "latency of hops": 0.42,
    "time of a micro-batch, measured": 0.005,
    "time of a micro-batch, from a rate": 0.05,
    "time that hides traffic": 0.2,
    "oversubscription, where it is assumed": 1.0,
}
_RATE, _LATENCY, _MEASURED, _STATED, _HIDES, _OVERSUBSCRIPTION = SPREADS.values()

# Draws for jobs of at most so many ranks, and of more: a draw scores two placements.
_DRAWS = ((4_096, 64), (16_384, 32), (65_536, 16))
_FEWEST_DRAWS = 8
_RANKS_OF_GROUP = 100  # whose score takes as long as a communicator of the user's own
# Quantiles of the draws between which the truth lies 19 times of 20; with the fewest
# draws 7 times of 8.
_ENDS = (0.03, 0.97)


class Saving(NamedTuple):
    """What a placement saves.

    Attributes
    ----------
    before_s : float, s
        The step of the other one.
    saved_s : float, s
        Negative where it is longer.
    low_s, high_s : float, s
        Between which it lies, with 95 % confidence.
    """

    before_s: float
    saved_s: float
    low_s: float
    high_s: float

    @classmethod
    def of(cls, before_s: float, after_s: float, drawn: FloatArray) -> Saving:
        """What is saved, and draws of it, each the middle of its range."""
        saved = before_s - after_s
        low, high = np.quantile(drawn, _ENDS, method="hazen").tolist()
        return cls(before_s, saved, min(low, saved), max(high, saved))

    @property
    def is_measurable(self) -> bool:
        """Whether it is shorter by more than steps differ from run to run."""
        return self.low_s > JITTER * self.before_s

    @property
    def can_be_measured(self) -> bool:
        """Whether it is shorter, or longer, by more than that."""
        return self.is_measurable or self.high_s < -JITTER * self.before_s

    def to_dict(self) -> dict[str, Any]:
        """As verdicts have it: in s, and as a share of the step before."""
        share = self.saved_s / self.before_s if self.before_s else 0.0
        return {
            "saved_s": float(self.saved_s),
            "saved_s_interval": [float(self.low_s), float(self.high_s)],
            "saved_share": float(share),
        }


def saving(
    model: StepModel,
    before: IntArray,
    after: IntArray,
    seed: int = 0,
    *,
    thin: bool = False,
) -> Saving:
    """What the placement ``after`` saves of a step of ``before``.

    Both are the GPU of every rank, shape (R,). A function of its arguments alone; with
    ``thin`` uplinks may be thinner than assumed.
    """
    step, then = model.step(before).step_time_s, model.step(after).step_time_s
    if np.array_equal(before, after):
        return Saving(step, 0.0, 0.0, 0.0)
    ranks = len(before) + _RANKS_OF_GROUP * len(model.job.groups)
    count = next((n for most, n in _DRAWS if ranks <= most), _FEWEST_DRAWS)
    times = drawn_times(model, (before, after), count, seed, thin=thin)
    return Saving.of(step, then, times[:, 0] - times[:, 1])


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
        hides=1.0 + _HIDES * (2.0 * hides - 1.0),
        content=model.content,
    )


def _factor(spread: float, share: float) -> float:
    """The factor at a quantile."""
    return exp(spread * NormalDist().inv_cdf(share))


def _work_spread(job: Job) -> float:
    """How sure the time of a micro-batch is; that of roles is theirs."""
    compute = job.roles[0].job.compute if job.roles else job.compute
    if not compute.micro_batch_time:
        return _STATED
    return max(_MEASURED, compute.step_error / 2)


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
        rate[tiers] = _factor(_RATE, of_rate)
        latency[tiers] = _factor(_LATENCY, of_latency)
    topology = fabric.topology
    if over:
        times = 1.0 + _OVERSUBSCRIPTION * over
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
