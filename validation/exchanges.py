"""Exchanges between ranks: dispatch and combine of experts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from placer.api.score import score
from placer.document import parse_document
from placer.job.read import decode_job
from placer.placement.baselines import baseline
from placer.topology.read import read_topology
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


def _exposed(topology: Topology, document: object) -> dict[str, float]:
    """What a job adds to its step, ranks on GPUs in order."""
    job = decode_job(parse_document(json.dumps(document), "exchange.json"))
    found = score(topology, job, baseline("given-order", topology, job))
    exposed: dict[str, float] = found["exposed_s"]
    return exposed
