"""Simulated launches: what every process of a job reports, by each launcher's rule."""

import re
from collections import Counter

from placer.launch.process import Process


def hosts_of(seats):
    """Hosts in the order of their lowest rank."""
    return list(dict.fromkeys(host for host, _ in seats))


def as_planned(seats, launcher="env"):
    """Every rank on its seat; LOCAL_RANK is the GPU."""
    return [
        Process(host, launcher, rank, len(seats), gpu)
        for rank, (host, gpu) in enumerate(seats)
    ]


def by_torchrun(seats, order, permuted=True):
    """Host after host in this order, each with as many workers as it has seats."""
    found = []
    for node_rank, host in enumerate(order):
        gpus = [gpu for name, gpu in seats if name == host]
        listed = tuple(map(str, gpus if permuted else sorted(gpus)))
        found += [
            Process(host, "torchrun", len(found) + k, len(seats), k, listed, node_rank)
            for k in range(len(gpus))
        ]
    return found


def by_slurm(hosts_by_task):
    """Task r on the r-th host; local ids count up there."""
    by_name = sorted(set(hosts_by_task), key=number_key)
    seen = Counter()
    found = []
    for task, host in enumerate(hosts_by_task):
        found.append(
            Process(
                host,
                "slurm",
                task,
                len(hosts_by_task),
                seen[host],
                slurm_procid=task,
                slurm_nodeid=by_name.index(host),
            )
        )
        seen[host] += 1
    return found


def number_key(name):
    """Prefix, number, rest: enough for names with one number."""
    match = re.fullmatch(r"(\D*)(\d+)(.*)", name)
    assert match
    return match[1], int(match[2]), match[3]


def blocks(seats, order):
    """Host of every rank when hosts are filled one after the other."""
    counts = Counter(host for host, _ in seats)
    return [host for host in order for _ in range(counts[host])]


def dealt(seats, order):
    """Host of every rank when hosts get one rank in turn."""
    counts = Counter(host for host, _ in seats)
    rounds = range(max(counts.values()))
    return [host for k in rounds for host in order if counts[host] > k]
