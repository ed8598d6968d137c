"""Random workloads of a few ranks, and racks for them."""

from dataclasses import replace
from itertools import pairwise

from placer.documents import document_of
from placer.job.read import decode_job
from placer.testing import racks


def three_levels(sizes, gpus, nvlink=400e9):
    """Racks that NVLink joins, whose nodes are a little nearer inside."""
    machine = racks(sizes, gpus, nvlink=nvlink)
    node, rack, cluster = machine.tiers
    return replace(machine, tiers=(node, replace(rack, latency=2e-6), cluster))


def workload_of(roles, transfers, **keys):
    content = {
        "format": "placer/workload",
        "version": 1,
        "name": "w",
        "roles": roles,
        "transfers": transfers,
        "launcher": {"ranks": "free"},
    }
    return decode_job(document_of(content | keys, "w"))


def random_workload(rng, launcher="free"):
    """Two or three roles of one to four ranks, with any transfers."""
    roles = []
    for name in ("a", "b", "c")[: rng.choice((2, 2, 3))]:
        tp, dp = rng.choice(((1, 1), (2, 1), (1, 2), (1, 1)))
        job = {"parallelism": {"tp": tp, "dp": dp}}
        if tp > 1:
            own = {"name": "g", "collective": rng.choice(("all_reduce", "all_to_all"))}
            sent = {"bytes": rng.randrange(1, 9) * 1e7, "ranks": "all"}
            job["groups"] = [own | sent | {"overlap": rng.random() < 0.3}]
        role = {"name": name, "job": job, "instances": rng.choice((1, 2))}
        if tp > 1 and rng.random() < 0.3:
            role["require"] = {"g": "rack"}
        roles.append(role)
    overlap = rng.random() < 0.2
    names = [role["name"] for role in roles]
    transfers = []
    for first, second in pairwise(names):
        pattern = rng.choice(("reshard", "broadcast", "paired", "all_to_all"))
        size = rng.randrange(1, 20) * 1e7
        ends = {"from": first, "to": second, "bytes": size}
        transfers.append(ends | {"pattern": pattern, "overlap": overlap})
    return workload_of(roles, transfers, launcher={"ranks": launcher})
