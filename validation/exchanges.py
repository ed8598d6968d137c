"""Exchanges between ranks: dispatch and combine of experts, transfers of roles."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from placer.api.score import score
from placer.documents import parse_document
from placer.job.read import decode_job
from placer.placement.baselines import baseline
from placer.topology.read import parse_topology, read_topology
from validation.markdown import percent, table

if TYPE_CHECKING:
    from placer.topology.model import Topology

TOKENS, WIDTH, TOP_K = 4096, 7168, 8


class Dispatch(NamedTuple):
    """GB/s of logical bytes, a token once to each GPU that has one of its experts.

    Means of dispatch and combine in BF16: of kernels, and of calls with 16 and with 32
    multiprocessors; 0 where nobody says.
    """

    name: str
    machine: str
    gpus: int
    kernel: float
    call: float
    wide: float


# shifangx/DeepEP 1242eb4f, Hybrid-EP_Intra-node_Implementation.md.
DISPATCHES = (
    Dispatch("8 B200", "hgx-b200-32x8", 8, 704, 533, 0),
    Dispatch("8 GB200", "nvl72", 8, 717, 544, 557),
    Dispatch("16 GB200", "nvl72", 16, 631, 474, 523),
    Dispatch("24 GB200", "nvl72", 24, 602, 443, 496),
    Dispatch("32 GB200", "nvl72", 32, 589, 454, 474),
    Dispatch("36 GB200", "nvl72", 36, 578, 444, 463),
)


def dispatch_rate(machine: str, gpus: int) -> float:
    """GB/s of one dispatch among the first GPUs, from a step of nothing else."""
    document = {
        "format": "placer/job",
        "version": 1,
        "name": "dispatch",
        "parallelism": {"dp": gpus, "ep": gpus},
        "model": {
            "layers": 1,
            "hidden": WIDTH,
            "ffn": WIDTH,
            "heads": 64,
            "vocab": 1000,
            "experts": 8 * gpus,
            "top_k": TOP_K,
            "expert_ffn": 2048,
        },
        "sequence": TOKENS,
        "micro_batch": 1,
        "micro_batches": 1,
        "expert_parallel": {"dispatch": "deduplicated"},
        "compute": {"micro_batch_time": "1s"},
    }
    exposed = _exposed(read_topology(machine), document)
    # Dispatch and combine, forward and backward.
    once = exposed["ep"] / 4
    found_on = gpus * (1 - (1 - 1 / gpus) ** TOP_K)
    return found_on * TOKENS * WIDTH * 2 / once / 1e9


def dispatches() -> str:
    """Every published dispatch beside the model's."""
    rows = []
    for point in DISPATCHES:
        found = dispatch_rate(point.machine, point.gpus)
        calls = (f"{call:.0f}" if call else "-" for call in (point.call, point.wide))
        errors = (
            percent(found / call - 1, 0) if call else "-"
            for call in (point.call, point.wide)
        )
        rows.append(
            (point.name, f"{point.kernel:.0f}", *calls, f"{found:.0f}", *errors)
        )
    head = ("GPUs", "kernel", "call, 16 SMs", "call, 32 SMs", "predicted")
    return table((*head, "of 16 SMs", "of 32 SMs"), rows)


class Weights(NamedTuple):
    """How a copy of a model's weights went from one rack to another.

    Attributes
    ----------
    name, pattern : str
    senders, receivers : int
        GPUs of each side; the copy of a broadcast is one GPU's of its tray of four.
    measured : float, s
    """

    name: str
    pattern: str
    senders: int
    receivers: int
    measured: float


POLICY = 2 * 359.6e9
# marin-community/marin issue 7695, bench/ at 13fb1559: medians, over NCCL, warm.
TRANSFERS = (
    Weights("one GPU to one", "paired", 1, 1, 26.96),
    Weights("one GPU to eight, a copy each", "broadcast", 4, 8, 7.31),
    Weights("eight GPUs to eight, an eighth each", "paired", 8, 8, 3.97),
)


def transfer_s(point: Weights) -> float:
    """Seconds of a transfer between two racks of GB200 with 400 Gb/s a GPU."""
    rack = {"bandwidth": "900GB/s", "latency": "1us", "scale_up": True}
    rack["efficiency"] = 0.8
    outer = {"bandwidth": "400Gb/s", "latency": "8us", "efficiency": 0.994}
    sides = {"a": point.senders, "b": point.receivers}
    machine = {
        "format": "placer/topology",
        "version": 1,
        "name": "two-racks",
        "tiers": [
            {"name": "node", "size": 4, **rack},
            {"name": "rack", **rack},
            {"name": "cluster", **outer},
        ],
        "nodes": [
            {"names": f"{side}[1-{-(-gpus // 4)}]", "rack": side, "gpus": min(gpus, 4)}
            for side, gpus in sides.items()
        ],
    }
    document = {
        "format": "placer/workload",
        "version": 1,
        "name": "weights",
        "roles": [
            {"name": side, "steps": 0, "job": {"parallelism": {"tp": gpus}}}
            for side, gpus in sides.items()
        ],
        "transfers": [
            {"from": "a", "to": "b", "pattern": point.pattern, "bytes": POLICY}
        ],
    }
    topology = parse_topology(json.dumps(machine), "two-racks.json")
    return _exposed(topology, document)["traffic"]


def transfers() -> str:
    """Every measured transfer beside the model's."""
    rows = []
    for point in TRANSFERS:
        found = transfer_s(point)
        error = percent(found / point.measured - 1, 0)
        rows.append((point.name, f"{point.measured} s", f"{found:.2f} s", error))
    return table(("719 GB of weights", "measured", "predicted", "error"), rows)


def _exposed(topology: Topology, document: object) -> dict[str, float]:
    """What a job adds to its step, ranks on GPUs in order."""
    job = decode_job(parse_document(json.dumps(document), "exchange.json"))
    found = score(topology, job, baseline("given-order", topology, job))
    exposed: dict[str, float] = found["exposed_s"]
    return exposed
