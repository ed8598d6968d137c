"""Node ranks after trays of a rack fail: ``python -m benchmarks.restarts``.

Some nodes of each rack run a job, the others are spares. A row says what a rule of
numbering does to the nodes that stay, and how many replicas then lie in several racks.

Rules beside placer's own (`placer.replace`):

* torch's c10d numbers those that meet by address as text
  (pytorch, ``elastic/rendezvous/dynamic_rendezvous.py``); spares that come first meet.
* nvidia-resiliency-ext 0.4 keeps each node's rank and fills the gaps in the order of
  addresses (``fault_tolerance/_ft_rendezvous.py``, ``_assign_ranks``).
* nvidia-resiliency-ext 0.7 with ``--ft-segment``: racks in the order of their smallest
  infrastructure rank, of each its complete segments, until there are nodes enough
  (``fault_tolerance/ft_rendezvous_barrier.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import placer

JOB = """\
format: placer/job
version: 1
name: replicas
parallelism: {{tp: 4, pp: {pp}, dp: {dp}, order: tp-cp-ep-pp-dp}}
weights: {{tp: 4000, pp: 40, dp: 4}}
"""
MACHINE = """\
format: placer/topology
version: 1
name: racks
tiers:
  - {name: node, size: 4, bandwidth: 900GB/s, scale_up: true}
  - {name: rack, bandwidth: 900GB/s, scale_up: true}
  - {name: cluster, bandwidth: 50GB/s}
nodes:
"""


@dataclass(frozen=True)
class Case:
    """A machine of racks, a job on some of its nodes, and a failure.

    Attributes
    ----------
    racks, trays : int
        Racks, and trays in each.
    used : int
        Trays of each rack with ranks, but for spare racks.
    spare : int
        Racks without ranks.
    segment : int
        Trays of a replica.
    failed : int
        Trays of the first rack that fail.
    """

    racks: int
    trays: int
    used: int
    spare: int
    segment: int
    failed: int

    @property
    def nodes(self) -> list[str]:
        """Every node, by rack."""
        return [
            f"r{rack:02}t{tray:02}"
            for rack in range(self.racks)
            for tray in range(self.trays)
        ]

    @property
    def before(self) -> list[str]:
        """The nodes with ranks, by node rank."""
        last = self.racks - self.spare
        return [n for n in self.nodes if int(n[4:]) < self.used and int(n[1:3]) < last]

    @property
    def lost(self) -> list[str]:
        """The nodes that fail, all of the first rack."""
        return self.nodes[2 : 2 + self.failed]

    @property
    def left(self) -> list[str]:
        """The nodes that do not."""
        return [node for node in self.nodes if node not in self.lost]


CASE = Case(9, 18, 16, 1, 16, 3)  # 3 of 128 nodes fail, replicas of 16 nodes


def met(case: Case) -> list[str]:
    """The nodes with ranks that stay, and as many spares as are needed."""
    stay = [node for node in case.before if node not in case.lost]
    spares = [node for node in case.left if node not in case.before]
    return [*stay, *spares[: case.failed]]


def by_c10d(case: Case) -> list[str]:
    """Those that meet, by address as text."""
    return sorted(met(case))


def by_gaps(case: Case) -> list[str]:
    """Each keeps its rank; those that are new fill the gaps."""
    new = iter(node for node in sorted(met(case)) if node not in case.before)
    return [next(new) if node in case.lost else node for node in case.before]


def by_segments(case: Case) -> list[str]:
    """Complete segments of each rack, racks by their smallest infrastructure rank."""
    taken: list[str] = []
    for rack in dict.fromkeys(node[:3] for node in case.left):
        there = [node for node in case.left if node[:3] == rack]
        taken += there[: len(there) // case.segment * case.segment]
    return taken[: len(case.before)]


def by_placer(case: Case) -> tuple[list[str], list[str]]:
    """The order of a plan, and where `placer.replace` leaves it, all spares at hand."""
    dp = len(case.before) // case.segment
    racks = "".join(
        f"  - {{names: '{rack}t[00-{case.trays - 1:02}]', rack: {rack}}}\n"
        for rack in dict.fromkeys(node[:3] for node in case.nodes)
    )
    with TemporaryDirectory() as folder:
        job, machine = Path(folder) / "job.yaml", Path(folder) / "machine.yaml"
        job.write_text(JOB.format(pp=case.segment, dp=dp))
        machine.write_text(MACHINE + racks)
        plan = placer.place(machine, job, hosts=case.before).plan
        found = placer.replace(plan, failed=case.lost, added=case.left).plan
    return _order(plan), _order(found)


def _order(plan: placer.Plan) -> list[str]:
    return [plan.nodes[node] for node in dict.fromkeys(plan.node_of_rank.tolist())]


RULES: dict[str, Callable[[Case], list[str]]] = {
    "torch's c10d": by_c10d,
    "nvidia-resiliency-ext 0.4": by_gaps,
    "nvidia-resiliency-ext 0.7, `--ft-segment`": by_segments,
}


def row(case: Case, rule: str, before: list[str], after: list[str]) -> str:
    """A row of the table."""
    pairs = [*zip(before, after, strict=True)]
    renumbered = sum(old != new and new in before for old, new in pairs)
    moved = sum(old != new for old, new in pairs)
    size = case.segment
    replicas = [after[at : at + size] for at in range(0, len(after), size)]
    split = sum(len({node[:3] for node in replica}) > 1 for replica in replicas)
    return f"| {rule} | {moved} | {renumbered} | {split} |"


def table() -> Iterator[str]:
    """What each rule does after the failure, as a Markdown table."""
    yield (
        "| rule | node ranks on another node | "
        "nodes that stay and are renumbered | replicas in several racks |"
    )
    yield "|---|--:|--:|--:|"
    for rule, after in RULES.items():
        yield row(CASE, rule, CASE.before, after(CASE))
    yield row(CASE, "placer", *by_placer(CASE))


if __name__ == "__main__":
    print("\n".join(table()))
