"""What is assumed of a job that is to be placed: its rate of compute, its vocabulary.

The rate is a share of the peak of its machine's GPUs: what matrix products sustain,
without communication, bubbles and fixed time, which the step has besides.

A vocabulary changes the first and the last stage a little, and no traffic in which
placements differ; that of Llama 3 (128,256, Meta's model card) is as good as any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from placer.assumed import RATE
from placer.formats.jobs.findings import Fact, Findings, Place
from placer.job.memory import PEAK_OF
from placer.topology.gpu_kinds import hosts_of_gpu, usual_gpu
from placer.topology.read import read_topology

if TYPE_CHECKING:
    from placer.topology.gpu import Gpu
    from placer.topology.model import Topology

_VOCABULARY = 128_256
_TIME = "compute.micro_batch_time"


class Share(NamedTuple):
    """Share of a peak that products sustain, and between which it lies."""

    usual: float
    low: float
    high: float


# Nine tenths of the median of dense runs that were published, in whole points, and
# about where nine of ten of them lie (``docs/assumed.md`` has the figures): who
# publishes has tuned, so others reach a little less. Sources: of bf16 arXiv 2407.21783,
# Table 4 (0.53), and four runs more (0.33 to 0.46); of fp8 MLPerf's (0.42, 0.43, 0.47)
# and 27 of NVIDIA's and torchtitan's (median 0.42); of fp4 MLPerf's (0.27, 0.34) and
# four of NVIDIA's (0.25 to 0.33).
_SHARES = {
    "bf16": Share(0.40, 0.30, 0.55),
    "fp8": Share(0.38, 0.25, 0.52),
    "fp4": Share(0.25, 0.15, 0.35),
}


def says_time(found: Findings) -> bool:
    """Whether anything says how long the work takes."""
    return found.has(_TIME) or found.has(RATE)


def assume_usual(found: Findings, machine: Topology) -> None:
    """Set what is usual on a machine where no source says it."""
    _assume_rate(found, machine)
    if found.has("model.layers") and not found.has("model.vocab"):
        found.assume("model.vocab", _VOCABULARY, "Llama 3's: no source says it")


def _assume_rate(found: Findings, machine: Topology) -> None:
    """The rate that its GPUs reach."""
    if says_time(found):
        return
    gpu, whose = _gpu_of(machine)
    precision = PEAK_OF[found.text("memory.gemm", "bf16")]
    if precision not in gpu.peak:
        precision = "bf16"
    share, peak = _SHARES[precision], gpu.peak[precision] / 1e12
    usual, low, high = (float(f"{part * peak:.3g}") for part in share)
    why = f"{100 * share.usual:g} % of the {precision} peak of {whose}"
    place = Place(found.source)
    found.facts[RATE] = Fact(usual, "assumed", why, place, (low, high))


def _gpu_of(machine: Topology) -> tuple[Gpu, str]:
    """The machine's GPU, or the usual one of such hosts, and how to call it."""
    if "bf16" in machine.gpu.peak:
        return machine.gpu, machine.gpu.name or "its GPUs"
    size = int(machine.gpus_of_node.max())
    name, _ = usual_gpu(size, trays=machine.scale_up_tier > 0)
    return read_topology(hosts_of_gpu(name)).gpu, f"an {name}, the usual GPU"
