"""Every placement of a tiny job that keeps its rules.

It shares nothing with the search: all begins with the plain loops of `placer.testing`.
Shapes: P placements, R ranks.
"""

from itertools import groupby, permutations
from math import gcd

import numpy as np

from placer.job.even import axis_of, is_even
from placer.testing.oracle import coordinates, gpus_of, groups_of, launchable


def gpus_differ(topology):
    """Whether a placement is more than the node of every rank."""
    return topology.islands is not None or any(tier.rails for tier in topology.tiers)


def every_legal(topology, job):
    """GPUs of the ranks in every placement that keeps all rules; (P, R).

    Of equal parts only the largest count, of hosts to avoid only the fewest.
    """
    return legal_of(topology, job, _anywhere(topology, job))


def legal_of(topology, job, gpus):
    """Those of some placements, one a row, that keep all rules best."""
    keeps = [_keeps_launch, _keeps_requirements, _keeps_pins, _keeps_at_most]
    for keep in (*keeps, _keeps_spares, _keeps_budgets, _keeps_even):
        if len(gpus):
            gpus = gpus[keep(topology, job, gpus)]
    for least in (_parts, _avoided):
        if len(gpus):
            cost = least(topology, job, gpus)
            gpus = gpus[cost == cost.min()]
    return gpus


def _anywhere(topology, job):
    """Seats as launcher and `require` allow; any at all where GPUs of a host differ."""
    if gpus_differ(topology):
        return _rows(permutations(range(topology.num_gpus), job.world_size), job)
    return seats_of(topology, job, launchable(topology, job))


def seats_of(topology, job, placements):
    """GPUs of the ranks where each node hands out its own by rank; shape (P, R)."""
    return _rows((gpus_of(topology, nodes) for nodes in placements), job)


def _rows(seats, job):
    return np.array([*seats], dtype=np.int64).reshape(-1, job.world_size)


def _keeps_launch(topology, job, gpus):
    """Runs of ranks on nodes, in ascending order of their GPUs in one of two ways."""
    kept = np.ones(len(gpus), dtype=bool)
    if job.launcher == "free":
        return kept
    node = topology.node_of_gpu[gpus]
    counts = topology.index_of_gpu
    for n in range(topology.num_nodes):
        on = node == n
        starts = on & ~np.roll(on, 1, axis=1)
        starts[:, 0] = on[:, 0]
        both = on[:, 1:] & on[:, :-1]
        ways = [
            (~both | (order[:, 1:] > order[:, :-1])).all(axis=1)
            for order in (counts[gpus], gpus)
        ]
        kept &= (starts.sum(axis=1) <= 1) & (ways[0] | ways[1])
    return kept


def required_groups(job, key):
    """Ranks of the groups that a requirement names; of roles, ``role.axis``."""
    axis, first = axis_of(key), 0
    for role in job.roles:
        for instance in range(role.instances):
            start = first + instance * role.job.world_size
            if axis.startswith(f"{role.name}."):
                for ranks in groups_of(role.job, axis.removeprefix(f"{role.name}.")):
                    yield [start + rank for rank in ranks]
        first += role.instances * role.job.world_size
    if not job.roles:
        yield from groups_of(job, axis)


def _keeps_requirements(topology, job, gpus):
    kept = np.ones(len(gpus), dtype=bool)
    for key, tier in job.require.items():
        domain = _domains(topology, tier)[gpus]
        for ranks in () if is_even(key) else required_groups(job, key):
            kept &= (domain[:, ranks] == domain[:, ranks[:1]]).all(axis=1)
    return kept


def _parts(topology, job, gpus):
    """Less than 0 by how many ranks parts are multiples of; 0 where some differ."""
    found = np.zeros(len(gpus), dtype=np.int64)
    for key, tier in job.require.items():
        if is_even(key):
            rows = _domains(topology, tier)[gpus].tolist()
            groups = [*required_groups(job, key)]
            found = np.array([-_part(groups, row) for row in rows])
    return found


def _keeps_even(topology, job, gpus):
    if not any(map(is_even, job.require)):
        return np.ones(len(gpus), dtype=bool)
    return _parts(topology, job, gpus) < 0


def _part(groups, domain):
    found = 0
    for ranks in groups:
        runs = [(d, len([*run])) for d, run in groupby(domain[rank] for rank in ranks)]
        lengths = {length for _, length in runs}
        if len({d for d, _ in runs}) < len(runs) or len(lengths) > 1:
            return 0
        found = gcd(found, lengths.pop())
    return found


def _keeps_pins(topology, job, gpus):
    kept = np.ones(len(gpus), dtype=bool)
    for pin in job.rules.pin:
        there = _named(topology, pin.hosts)[gpus]
        kept &= there[:, list(pin.ranks)].all(axis=1)
    return kept


def _keeps_at_most(topology, job, gpus):
    kept = np.ones(len(gpus), dtype=bool)
    for tier, most in job.rules.at_most.items():
        domain = _domains(topology, tier)
        for d in range(int(domain.max()) + 1):
            kept &= _replicas(job, domain[gpus] == d) <= most
    return kept


def _replicas(job, ranks):
    """How many replicas have any of the ranks that are marked; shape (P,)."""
    at = [coordinates(job.parallelism, r)["dp"] for r in range(job.world_size)]
    replica = np.array(at)
    of_each = [ranks[:, replica == r].any(axis=1) for r in sorted({*at})]
    return np.sum(of_each, axis=0)


def _keeps_spares(topology, job, gpus):
    kept = np.ones(len(gpus), dtype=bool)
    used = _used(topology, gpus)
    for tier, least in job.rules.spares.items():
        row = topology.domain_of_node[topology.tier_index(tier)]
        for d in range(int(row.max()) + 1):
            there = used[:, row == d]
            kept &= ~there.any(axis=1) | ((~there).sum(axis=1) >= least)
    return kept


def _keeps_budgets(topology, job, gpus):
    kept = np.ones(len(gpus), dtype=bool)
    for budget in job.rules.budgets:
        there = _named(topology, budget.names)[gpus]
        count = there.sum(axis=1)
        if budget.gpus is not None:
            kept &= count <= budget.gpus
        if budget.watts is not None:
            kept &= count * budget.gpu_watts <= budget.watts + 1e-9
        if budget.replicas is not None:
            kept &= _replicas(job, there) <= budget.replicas
    return kept


def _avoided(topology, job, gpus):
    names = {*job.rules.avoid}
    avoid = np.array([name in names for name in topology.node_names])
    return (_used(topology, gpus) & avoid).sum(axis=1)


def _used(topology, gpus):
    """Nodes that have ranks; shape (P, N)."""
    node = topology.node_of_gpu[gpus]
    return np.stack([(node == n).any(axis=1) for n in range(topology.num_nodes)], 1)


def _named(topology, names):
    """Whether the host of each GPU is one of those; shape (G,)."""
    is_named = np.array([name in names for name in topology.node_names])
    return is_named[topology.node_of_gpu]


def _domains(topology, tier):
    """Domain of each GPU at a tier, inside a host too; shape (G,)."""
    seen = topology.by_island
    return seen.domain_of_gpu[seen.tier_index(tier)]


class Sorts:
    """Which placements no cost can tell apart.

    All a cost may look at is which domains ranks share, and what these are like.
    """

    def __init__(self, topology):
        self._looks, self._rail = _looks(topology), topology.index_of_gpu
        self._has_rails = any(tier.rails for tier in topology.tiers)
        self._rows = topology.by_island.domain_of_gpu[:-1]

    def keys(self, gpus):
        """One row for all placements of a sort; shape (P, any)."""
        columns = [self._looks[gpus]]
        if self._has_rails:
            columns.append(self._rail[gpus])
        for row in self._rows:
            there = row[gpus]
            columns.append((there[:, :, None] == there[:, None, :]).argmax(axis=2))
        return np.concatenate(columns, axis=1)

    def key(self, gpu_of_rank):
        """What two placements of one sort have in common."""
        return self.keys(gpu_of_rank[None]).tobytes()

    def one_of_each(self, gpus):
        """The first placement of each sort."""
        first = np.unique(self.keys(gpus), axis=0, return_index=True)[1]
        return gpus[np.sort(first)]


def _looks(topology):
    """A number for what each GPU and the domains around it are like; shape (G,)."""
    seen = topology.by_island
    linked = {(link.tier, name) for link in topology.links for name in link.between}
    looks = []
    for gpu in range(seen.num_gpus):
        node = seen.node_of_gpu[gpu]
        at = seen.domain_of_node[:, node].tolist()
        inside = [
            (int((seen.domain_of_gpu[t] == d).sum()), int(seen.gpus_of_domain(t)[d]))
            for t, d in enumerate(at)
        ]
        ends = [
            seen.domain_names[t][d]
            for t, d in enumerate(at)
            if (seen.tiers[t].name, seen.domain_names[t][d]) in linked
        ]
        speed = float(seen.speed_of_node[node])
        factor = float(seen.bandwidth_factor[node])
        looks.append((factor, speed, *inside, *ends))
    number = {one: n for n, one in enumerate(dict.fromkeys(looks))}
    return np.array([number[one] for one in looks])
