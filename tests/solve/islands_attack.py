"""An attack on hosts with islands: a plan's life against all placements by plain loops.

``python -m tests.solve.islands_attack FIRST LAST`` draws hosts of one to three islands
in one or two tiers, of which GPUs are missing, and a job with experts, rules and either
launcher. The job is placed, checked, placed beside its own plan and on a machine that
lost a host or GPUs, and repaired after a failure. Nothing may crash; a bound above the
least cost is false, and so is a count of moves above the fewest.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

import placer
from placer.documents import parse_document
from placer.job.read import decode_job
from placer.solve.problem.objective import objective_of
from placer.topology.read import parse_topology

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from placer.job.model import Job
    from placer.placement.plan import Plan
    from placer.topology.model import Topology

Document = dict[str, Any]
Seats = tuple[int, ...]

ROUNDING = 1 + 1e-9
MOST_LISTED = 2_000
MOST_PRICED = 400


def machine(rng: random.Random) -> Document:
    """A topology file: one to four hosts of at most 16 GPUs in all."""
    is_deep = rng.random() < 0.15
    size, outer = rng.choice((1, 1, 2, 2, 2, 3)), rng.choice((1, 2, 2, 2, 3))
    counts = (2, 2) if is_deep else (outer,)
    islands = prod(counts)
    fast = rng.random() < 0.7
    gpus = [*range(size * islands)]
    if rng.random() < 0.4:
        rng.shuffle(gpus)
    first = {"name": "island", "size": size, "bandwidth": 200e9, "scale_up": fast}
    if rng.random() < 0.5:
        parts = [gpus[i * size : (i + 1) * size] for i in range(islands)]
        first["members"] = [sorted(part) for part in parts]
    names = ("half", "node") if is_deep else ("node",)
    inside = fast and rng.random() < 0.4
    tiers: list[Document] = [first]
    tiers += [
        {"name": name, "size": count, "bandwidth": 50e9, "scale_up": inside}
        for name, count in zip(names, counts, strict=True)
    ]
    racks = ["rack"] * (rng.random() < 0.35)
    thin = rng.choice((1, 1, 2, 4))
    tiers += [
        {"name": name, "bandwidth": 20e9, "oversubscription": thin}
        for name in (*racks, "cluster")
    ]
    for t, tier in enumerate(tiers):
        tier["latency"] = 1e-6 * (1 + t)
    nodes = []
    for host in rng.sample(range(4), min(rng.randint(2, 4), 16 // len(gpus))):
        entry: Document = {"names": f"h{host}"}
        if rng.random() < 0.45:
            lost = [rng.choice((0, 0, 1, 1, 2)) for _ in range(islands)]
            entry["gpus"] = [max(0, size - few) for few in lost]
        entry |= {rack: f"r{rng.randint(0, 1)}" for rack in racks}
        entry |= {"bandwidth_factor": 0.5} if rng.random() < 0.1 else {}
        nodes.append(entry)
    head = {"format": "placer/topology", "version": 1, "name": "islands"}
    found = {**head, "tiers": tiers, "nodes": nodes}
    if rng.random() < 0.15:
        found["unavailable"] = {rng.choice(nodes)["names"]: "broken"}
    return found


def job(rng: random.Random, file: Document, gpus: int) -> Document:
    """A job file of two to twelve ranks, many of which do not fill the hosts evenly."""
    most = min(12, gpus)
    world = most if rng.random() < 0.25 else rng.randint(2, most)
    sizes = [d for d in itertools.product(range(1, 5), repeat=3) if not world % prod(d)]
    tp, cp, pp = rng.choice(sizes)
    axes: Document = {"tp": tp, "cp": cp, "pp": pp, "dp": world // (tp * cp * pp)}
    model = {"layers": 2 * pp, "hidden": 768, "ffn": 3072, "heads": 12, "vocab": 1200}
    if rng.random() < 0.5:
        stage = world // pp // tp
        axes["ep"] = rng.choice([ep for ep in range(1, stage + 1) if not stage % ep])
        if axes["ep"] > 1:
            model |= {"experts": axes["ep"], "top_k": 1, "expert_ffn": 64}
    axes["order"] = rng.choice(("tp-cp-ep-pp-dp", "tp-cp-ep-dp-pp"))
    names = [entry["names"] for entry in file["nodes"]]
    tiers = [tier["name"] for tier in file["tiers"]]
    rules = {
        "pin": [{"ranks": str(rng.randrange(world)), "nodes": rng.choice(names)}],
        "avoid": [rng.choice(names)],
        "at_most": {"node": rng.randint(1, axes["dp"])},
        "spares": {"cluster": 1},
    }
    require = {rng.choice(("tp", "cp", "pp", "dp")): rng.choice(tiers[:-1])}
    return {
        "format": "placer/job",
        "version": 1,
        "name": "small",
        "parallelism": axes,
        "launcher": {"ranks": rng.choice(("free", "node-contiguous"))},
        "model": model,
        "sequence": 64 * 2 * cp * tp,
        "micro_batches": pp * rng.choice((1, 2)),
        "compute": {"micro_batch_time": rng.choice((3e-7, 1e-3))},
        "weights": {axis: rng.choice((1, 4, 9)) for axis in ("tp", "cp", "pp", "dp")},
        "require": require if rng.random() < 0.25 else {},
        "rules": {key: rule for key, rule in rules.items() if rng.random() < 0.12},
    }


@dataclass(frozen=True)
class Hosts:
    """The GPUs of some hosts, read from the file alone, in the order of the machine.

    Attributes
    ----------
    names : tuple of str
    host, index : list of int
        Of each GPU: its host, and what a launcher calls it there.
    domain : dict of str to list
        Domain of each GPU by the name of the tier.
    """

    names: tuple[str, ...]
    host: list[int]
    index: list[int]
    domain: dict[str, list[Any]]

    @classmethod
    def of(cls, file: Document, names: Sequence[str]) -> Hosts:
        """The hosts called so."""
        tiers = [tier["name"] for tier in file["tiers"]]
        sizes = [tier["size"] for tier in file["tiers"] if "size" in tier]
        size, islands = sizes[0], prod(sizes[1:])
        whole = [[*range(i * size, (i + 1) * size)] for i in range(islands)]
        members = file["tiers"][0].get("members", whole)
        entry_of = {entry["names"]: entry for entry in file["nodes"]}
        found = cls(tuple(names), [], [], {tier: [] for tier in tiers})
        for number, name in enumerate(names):
            entry = entry_of[name]
            counts = entry.get("gpus", [size] * islands)
            own = [(i, g) for i in range(islands) for g in members[i][: counts[i]]]
            order = sorted(gpu for _, gpu in own)
            for island, gpu in own:
                found.host.append(number)
                found.index.append(order.index(gpu))
                for t, tier in enumerate(tiers):
                    inside = (number, island // prod(sizes[1 : t + 1]))
                    outside = entry.get(tier, "all")
                    found.domain[tier].append(inside if t < len(sizes) else outside)
        return found

    @property
    def leaf(self) -> list[Any]:
        """The island of each GPU."""
        return self.domain["island"]

    def seats_of(self, plan: Plan) -> Seats:
        """The GPU of every rank of a plan."""
        number = {
            (self.names[host], index): gpu
            for gpu, (host, index) in enumerate(zip(self.host, self.index, strict=True))
        }
        pairs = zip(plan.host_of_rank, plan.gpu_of_rank.tolist(), strict=True)
        return tuple(number[pair] for pair in pairs)

    def placements(self, ranks: int, launcher: str) -> list[Seats] | None:
        """All of a launch, up to GPUs of an island; None where there are too many."""
        walk = self._free if launcher == "free" else self._by_host
        found = [*itertools.islice(walk((), ranks), MOST_LISTED)]
        return found if len(found) < MOST_LISTED else None

    def _free(self, before: Seats, ranks: int) -> Iterator[Seats]:
        if not ranks:
            yield before
            return
        first: dict[Any, int] = {}
        for gpu, island in enumerate(self.leaf):
            if gpu not in before:
                first.setdefault(island, gpu)
        for gpu in first.values():
            yield from self._free((*before, gpu), ranks - 1)

    def _by_host(self, before: Seats, ranks: int) -> Iterator[Seats]:
        """Runs of ranks on ascending GPUs, by island or as the launcher counts."""
        if not ranks:
            yield before
            return
        for host in set(self.host) - {self.host[gpu] for gpu in before}:
            own = [gpu for gpu, its in enumerate(self.host) if its == host]
            for length in range(1, min(ranks, len(own)) + 1):
                runs: dict[Any, Seats] = {}
                for chosen in itertools.combinations(own, length):
                    for run in (chosen, sorted(chosen, key=self.index.__getitem__)):
                        runs.setdefault(tuple(self.leaf[g] for g in run), tuple(run))
                for run in runs.values():
                    yield from self._by_host(before + run, ranks - length)

    def keeps(self, job: Job, seats: Seats) -> bool:
        """Whether a placement keeps the job's requirements and hard rules."""
        axes, rules = job.parallelism, job.rules
        for axis, tier in job.require.items():
            for members in axes.ranks_of_group[axis].tolist():
                if len({self.domain[tier][seats[rank]] for rank in members}) > 1:
                    return False
        host_of = [self.names[self.host[gpu]] for gpu in seats]
        if any(host_of[r] not in pin.hosts for pin in rules.pin for r in pin.ranks):
            return False
        replicas = axes.coordinates["dp"].tolist()
        for tier, most in rules.at_most.items():
            rows = zip(seats, replicas, strict=True)
            pairs = {(self.domain[tier][gpu], replica) for gpu, replica in rows}
            if max(Counter(domain for domain, _ in pairs).values()) > most:
                return False
        spare = len({*self.host}) - len({*host_of})  # the only tier is the cluster
        return all(spare >= least for least in rules.spares.values())

    def can_start(self, seats: Seats) -> bool:
        """Whether every host has one run of ranks, on ascending GPUs."""
        hosts = [self.host[gpu] for gpu in seats]
        if len([*itertools.groupby(hosts)]) > len({*hosts}):
            return False
        runs = [[gpu for gpu in seats if self.host[gpu] == host] for host in {*hosts}]
        return all(
            run == sorted(run) or run == sorted(run, key=self.index.__getitem__)
            for run in runs
        )

    def priced(
        self, topology: Topology, job: Job, objective: str
    ) -> list[tuple[float, Seats]] | None:
        """Every legal placement with the fewest hosts to avoid, and what it costs."""
        every = self.placements(job.world_size, job.launcher)
        if every is None:
            return None
        legal = [seats for seats in every if self.keeps(job, seats)]
        named = [{self.names[self.host[gpu]] for gpu in seats} for seats in legal]
        used = [len(hosts & {*job.rules.avoid}) for hosts in named]
        fewest = min(used, default=0)
        legal = [one for one, u in zip(legal, used, strict=True) if u == fewest]
        if len(legal) > MOST_PRICED:
            return None
        numbers = [topology.node_names.index(name) for name in self.names]
        goal = objective_of(topology.select(np.array(numbers)), job, objective)
        return [(float(goal.value(np.array(seats))), seats) for seats in legal]


@dataclass(frozen=True)
class Case:
    """A machine, a job and what it is placed for."""

    file: Document
    topology: Topology
    job: Job
    objective: str

    def place(self, topology: Topology, previous: Plan | None = None) -> Plan:
        """The plan of a short search."""
        found = placer.place(
            topology,
            self.job,
            objective=self.objective,
            previous=previous,
            time_limit=1.0,
            effort="quick",
            workers=1,
        )
        return found.plan

    def faults(self, plan: Plan, hosts: Hosts, job: Job) -> Iterator[str]:
        """What is false of a plan on some hosts."""
        seats = hosts.seats_of(plan)
        if len({*seats}) < len(seats) or not hosts.keeps(job, seats):
            yield "breaks a rule"
        if job.launcher != "free" and not hosts.can_start(seats):
            yield "cannot be started"
        if not job.rules.avoid:  # orders that use such hosts are cheaper
            placer.check(plan)
        priced = hosts.priced(self.topology, job, self.objective)
        if priced is None:
            return
        least, bound = min(priced)[0], plan.bound
        if bound["lower_bound"] > least * ROUNDING:
            yield f"bound {bound['lower_bound']}, there is {least}: {bound['argument']}"
        if bound["value"] * ROUNDING < least:
            yield f"value {bound['value']} below the least of all, {least}"


def drawn(rng: random.Random) -> Case | None:
    """A case; None where the files are refused."""
    file = machine(rng)
    try:
        topology = parse_topology(json.dumps(file), "t.json")
        text = json.dumps(job(rng, file, max(2, topology.num_gpus)))
        small = decode_job(parse_document(text, "j.json"))
    except placer.InputError:
        return None
    return Case(file, topology, small, rng.choice(("time", "hop-cost")))


def faults(seed: int, counts: Counter[str]) -> Iterator[str]:
    """What is false about case number ``seed``."""
    rng = random.Random(f"islands {seed}")
    case = drawn(rng)
    if case is None:
        return
    hosts = Hosts.of(case.file, case.topology.node_names)
    try:
        plan = case.place(case.topology)
    except placer.InputError:
        return
    except placer.InfeasibleError:
        counts["infeasible"] += 1
        if hosts.priced(case.topology, case.job, case.objective):
            yield "said infeasible, is not"
        return
    counts["placed"] += 1
    yield from case.faults(plan, hosts, case.job)
    again = case.place(case.topology, plan)
    is_better = again.bound["value"] * ROUNDING < plan.bound["value"]
    # A search that the clock ended may have missed one with less traffic.
    in_time = plan.solver["deterministic"] and again.solver["deterministic"]
    if again.previous["moved"] and not is_better and in_time:
        yield f"moves {again.previous['moved']} ranks of its own plan"
    yield from _elsewhere(case, rng, plan, counts)
    yield from _repaired(case, rng, plan, counts)


def _elsewhere(
    case: Case, rng: random.Random, plan: Plan, counts: Counter[str]
) -> Iterator[str]:
    """The job beside its plan, on a machine with fewer hosts or GPUs."""
    file = json.loads(json.dumps(case.file)) | {"unavailable": {}}
    entry = rng.choice(file["nodes"])
    if rng.random() < 0.5:
        file["nodes"].remove(entry)
    else:
        sizes = [tier["size"] for tier in file["tiers"] if "size" in tier]
        counted = entry.get("gpus", [sizes[0]] * prod(sizes[1:]))
        entry["gpus"] = [max(0, count - rng.randint(0, 1)) for count in counted]
    try:
        topology = parse_topology(json.dumps(file), "left.json")
        found = case.place(topology, plan)
    except (placer.InputError, placer.InfeasibleError):
        return
    counts["placed elsewhere"] += 1
    moved = _moved(plan, found)
    if found.previous["kept"] > case.job.world_size - moved:
        yield f"says {found.previous['kept']} stay, {moved} move"


def _repaired(
    case: Case, rng: random.Random, plan: Plan, counts: Counter[str]
) -> Iterator[str]:
    """The plan after the loss of a host."""
    failed = rng.choice(sorted({*plan.host_of_rank}))
    try:
        found = placer.replace(
            plan, failed=[failed], shrink=rng.random() < 0.3, time_limit=1.0
        )
    except (placer.InputError, placer.InfeasibleError):
        return
    counts["repaired"] += 1
    left = [name for name in case.topology.node_names if name != failed]
    hosts = Hosts.of(case.file, left)
    unspared = replace(found.job, rules=replace(found.job.rules, spares={}))
    yield from case.faults(found.plan, hosts, unspared)
    if found.job.world_size < case.job.world_size:
        counts["shrunk"] += 1
        return
    said, moved = found.plan.previous, _moved(plan, found.plan)
    if said["moved"] != moved:
        yield f"says {said['moved']} move, {moved} do"
    priced = hosts.priced(case.topology, unspared, case.objective)
    if priced is None or unspared.launcher != "free" or unspared.rules.avoid:
        return
    whole = Hosts.of(case.file, case.topology.node_names)
    before = [_named(whole, gpu) for gpu in whole.seats_of(plan)]
    allowed = max(said["budget"], found.plan.bound["value"]) * ROUNDING
    fewest = min(
        sum(_named(hosts, gpu) != old for gpu, old in zip(seats, before, strict=True))
        for value, seats in priced
        if value <= allowed
    )
    if said["fewest"] > fewest:
        yield f"at least {said['fewest']} must move, {fewest} can: {said['argument']}"


def _named(hosts: Hosts, gpu: int) -> tuple[str, int]:
    """The island of a GPU by the name of its host."""
    return hosts.names[hosts.host[gpu]], hosts.leaf[gpu][1]


def _moved(old: Plan, new: Plan) -> int:
    """Ranks that two plans have on different GPUs."""
    seats = (
        zip(plan.host_of_rank, plan.gpu_of_rank.tolist(), strict=True)
        for plan in (old, new)
    )
    return sum(before != after for before, after in zip(*seats, strict=True))


def attack(first: int, last: int) -> tuple[Counter[str], list[str]]:
    """Counts of the cases ``first`` to ``last - 1``, and what is false about them."""
    counts: Counter[str] = Counter()
    false = []
    for seed in range(first, last):
        false += [f"{seed}: {fault}" for fault in faults(seed, counts)]
    return counts, false


if __name__ == "__main__":
    begin, end = (int(text) for text in sys.argv[1:])
    for start in range(begin, end, 100):
        totals, wrong = attack(start, min(start + 100, end))
        print(start, *wrong, dict(sorted(totals.items())), sep="\n  ", flush=True)
