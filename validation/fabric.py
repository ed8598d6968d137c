"""Collectives on a fabric: published bus bandwidths, and shared uplinks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from placer.api.score import score
from placer.base.units import format_bytes, parse_number
from placer.documents import Value, open_document, parse_document
from placer.job.read import decode_job
from placer.placement.baselines import baseline
from placer.topology.read import parse_topology, read_topology
from validation.files import FOLDER
from validation.markdown import percent, table

if TYPE_CHECKING:
    from placer.topology.model import Topology

Ranks = list[list[int]]

# Machine and event times of the contention cases: 8 racks of 4 GPUs, 100 GB/s a NIC,
# uplinks of 400 GB/s over the oversubscription; buffers of 2^28 bytes a group. Event
# times in us, by oversubscription.
RACKS, GPUS, SIZE = 8, 4, 2**28
RAILS = [[rack * GPUS + gpu for rack in range(RACKS)] for gpu in range(GPUS)]
IN_RACKS = [[rack * GPUS + gpu for gpu in range(GPUS)] for rack in range(RACKS)]
CONTENTION: tuple[tuple[Ranks, bool, dict[int, int]], ...] = (
    (IN_RACKS, True, {1: 225}),
    (RAILS, True, {1: 2363, 2: 4713, 4: 9412, 7: 16464}),
    ([list(chain(*IN_RACKS))], False, {1: 2604, 4: 2606}),
    ([list(chain(*RAILS))], False, {1: 2605, 4: 10403}),
)


def bus_bandwidths() -> str:
    """Every published bus bandwidth beside the model's."""
    document = open_document(str(FOLDER / "bus_bandwidth.yaml"))
    document.check_format("placer-validation/bus-bandwidth")
    rows = [
        _bandwidth_row(point) for point in document.root.items("points", required=True)
    ]
    document.finish()
    return table(("collective", "smallest and largest", "error at the largest"), rows)


def _bandwidth_row(value: Value) -> tuple[str, ...]:
    point = value.section()
    name, source = point.text("name"), point.text("source")
    machine = point.text("topology")
    where = str(FOLDER / machine) if machine.endswith(".yaml") else machine
    topology = read_topology(where)
    gpus, collective = point.integer("gpus"), point.text("collective")
    sizes = [size.quantity(parse_number) for size in point.items("sizes")]
    measured = [rate.number() for rate in point.items("measured")]
    passes = {"all_reduce": 2.0}.get(collective, 1.0)
    if collective != "send_recv":
        passes *= (gpus - 1) / gpus
    members = [list(range(gpus))]
    found = [
        passes * size / group_seconds(topology, gpus, members, collective, size) / 1e9
        for size in sizes
    ]
    by_size = [*zip(sizes, measured, found, strict=True)]
    shown = by_size[:1] * (len(by_size) > 1) + by_size[-1:]
    return (
        f"{name}, {collective.replace('_', '-')} ({source})",
        ", ".join(
            f"{format_bytes(size)} {rate:.0f} / {model:.0f}"
            for size, rate, model in shown
        ),
        percent(found[-1] / measured[-1] - 1, 0),
    )


def contention() -> str:
    """Lock-step rings that share uplinks, against an event simulation: the errors."""
    errors = []
    for groups, nvlink, cases in CONTENTION:
        for oversubscription, event in cases.items():
            machine = _racks(oversubscription, nvlink=nvlink)
            ranks = RACKS * GPUS
            time = group_seconds(machine, ranks, groups, "reduce_scatter", SIZE)
            errors.append(time * 1e6 / event - 1)
    least, most = (percent(end, 1) for end in (min(errors), max(errors)))
    return f"{least} to {most}"


def group_seconds(
    topology: Topology,
    ranks: int,
    groups: Sequence[Sequence[int]],
    collective: str,
    size: float,
) -> float:
    """Seconds of one collective in all ``groups`` at once, ranks on GPUs in order."""
    document = {
        "format": "placer/job",
        "version": 1,
        "name": "collective",
        "parallelism": {"dp": ranks},
        "groups": [
            {"name": "g", "collective": collective, "bytes": size, "ranks": groups}
        ],
    }
    job = decode_job(parse_document(json.dumps(document), "collective.json"))
    found = score(topology, job, baseline("given-order", topology, job))
    return float(found["exposed_s"]["g"])


def _racks(oversubscription: int, *, nvlink: bool) -> Topology:
    """The machine of the contention cases.

    Without an NVLink domain a ring keeps its order and drives one NIC, as the
    simulated rings did; NCCL would put the members of a rack side by side.
    """
    tiers = [
        {
            "name": "rack",
            "size": GPUS,
            "bandwidth": 900e9,
            "latency": 0.5e-6,
            "scale_up": nvlink,
        },
        {
            "name": "cluster",
            "bandwidth": 100e9,
            "latency": 3e-6,
            "oversubscription": oversubscription,
        },
    ]
    document = {
        "format": "placer/topology",
        "version": 1,
        "name": "racks",
        "tiers": tiers,
        "nodes": [{"names": f"r[1-{RACKS}]"}],
    }
    return parse_topology(json.dumps(document), "racks.json")
