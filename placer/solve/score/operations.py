"""Operations of the scorer as operations of the compiled step.

What an operation takes is worked out there for all-to-alls, messages and rings; what
groups inside one atom take, the scorer says once for every site; anything else it is
asked each time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from placer.base.arrays import FloatArray, IntArray, row_of_number
from placer.cost.collectives import (
    NODE_SWITCH,
    NVLS_HEADS,
    NVLS_STEPS,
    RACK_SWITCH,
    Route,
    all_reduces,
    nvls_all_reduce,
    ring_pass,
    share_sent,
    tree_buffers,
)
from placer.cost.custom import flows_time, group_time
from placer.cost.exchange import KERNEL_SHARE
from placer.cost.network import PlacedNetwork
from placer.solve.score.groups import (
    Numbers,
    Rows,
    groups_of_atoms,
    pairs_of_atoms,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from placer.cost.fabric import Fabric
    from placer.cost.step import StepModel
    from placer.job.traffic import Group, RankTraffic
    from placer.solve.score._kernel import StepTime
    from placer.solve.score.questions import Question
    from placer.solve.score.slots import Sites, Slots


@dataclass(frozen=True, eq=False)
class Added:
    """An operation of the step.

    Attributes
    ----------
    number : int
    of_row : ndarray, shape (g,)
        Group that stands for each row of the question; of messages, for each message.
    count : int
        Groups.
    """

    number: int
    of_row: IntArray
    count: int


@dataclass(frozen=True, eq=False)
class Operations:
    """Adds the operations of a job to a step.

    Attributes
    ----------
    step : StepTime
    fabric : Fabric
    atoms : Slots
        Ranks of atoms, and the slots that they may be on.
    sites : Sites
    """

    step: StepTime
    fabric: Fabric
    atoms: Slots
    sites: Sites
    _atom: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_atom", row_of_number(self.atoms.ranks))

    @property
    def num_atoms(self) -> int:
        """A."""
        return len(self.atoms.ranks)

    def atom_of(self, ranks: IntArray) -> IntArray:
        """Atom of each rank."""
        return self._atom[ranks]

    def add(self, questions: list[Question]) -> Added:
        """One operation for questions of the same groups, which differ in size."""
        one = questions[0]
        if self.fabric.links:
            return self._asked(questions)
        if one.kind in ("send", "pass_on"):
            return self._messages(one)
        if one.kind == "all_to_all":
            return self._exchange(questions)
        atoms = self._atom[one.members]
        inside = self.sites.scale_up >= 0 and (atoms == atoms[:, :1]).all()
        if inside and len(questions) == 1:
            return self._inside(one, atoms[:, 0])
        return self._rings(questions)

    def ask(
        self, count: int, sizes: int, tell: Callable[[IntArray], FloatArray]
    ) -> int:
        """An operation that is priced by a function of the GPU of every rank."""
        atoms = self.atoms
        nobody = Rows.of([[]] * self.num_atoms)  # all are asked for each time

        def answer(slots: IntArray) -> FloatArray:
            found = tell(atoms.gpu_of_rank(slots))
            return np.ascontiguousarray(found, dtype=np.float64).ravel()

        return self.step.add_asked(nobody.start, nobody.entry, count, sizes, answer)

    def flows(self, traffic: RankTraffic) -> int:
        """The slowest flow of a traffic matrix."""
        fabric = self.fabric
        if fabric.links:

            def tell(gpu_of_rank: IntArray) -> FloatArray:
                network = PlacedNetwork(fabric, gpu_of_rank)
                return np.array([flows_time(network, traffic).seconds])

            return self.ask(1, 1, tell)
        senders, receivers = traffic.senders, traffic.receivers
        return self.step.add_flows(
            self._atom[senders].astype(np.int32),
            self._atom[receivers].astype(np.int32),
            senders.astype(np.int32),
            receivers.astype(np.int32),
            np.ascontiguousarray(traffic.size_bytes, dtype=np.float64),
            float(traffic.pair_share),
            float(traffic.fixed_s),
        )

    def relay(self, model: StepModel, group: Group) -> int:
        """The groups of a relay, each hop after hop."""
        fabric = self.fabric
        if fabric.links:

            def tell(gpu_of_rank: IntArray) -> FloatArray:
                network = PlacedNetwork(fabric, gpu_of_rank)
                return group_time(network, group, model.job.collectives).group_seconds

            return self.ask(len(group.ranks), 1, tell)
        rows = Rows.of([self._atom[list(ranks)] for ranks in group.ranks])
        return self.step.add_relay(rows.start, rows.entry, float(group.size_bytes))

    def _asked(self, questions: list[Question]) -> Added:
        one, fabric = questions[0], self.fabric  # a step that asks it keeps no more
        count = one.members.size if one.kind == "send" else len(one.members)

        def tell(gpu_of_rank: IntArray) -> FloatArray:
            """What the scorer says of the questions, size after size."""
            network = PlacedNetwork(fabric, gpu_of_rank)
            return np.concatenate([each.ask(network) for each in questions])

        return Added(self.ask(count, len(questions), tell), np.arange(count), count)

    def _inside(self, question: Question, atom: IntArray) -> Added:
        """Groups inside atoms: what the scorer says of a slot of each site."""
        at = self.sites.of_gpu[self.atoms.gpus[:, 0]]
        seconds = np.zeros(len(self.sites.rail))
        alone = replace(question, members=question.members[atom == atom[0]])
        gpu_of_rank = np.zeros(self.atoms.num_ranks, dtype=np.int64)
        for site, slot in zip(*np.unique(at, return_index=True), strict=True):
            gpu_of_rank[self.atoms.ranks[atom[0]]] = self.atoms.gpus[slot]
            network = PlacedNetwork(self.fabric, gpu_of_rank)
            seconds[site] = alone.ask(network).max()
        count = len(atom)
        groups = Rows.pairs(atom, np.arange(count), self.num_atoms)
        number = self.step.add_inside(
            groups.start, groups.entry, atom.astype(np.int32), seconds
        )
        return Added(number, np.arange(count), count)

    def _exchange(self, questions: list[Question]) -> Added:
        one = questions[0]
        members = one.members.shape[1]
        found = groups_of_atoms(self._atom[one.members], in_turn=False, every=False)
        groups = found.members.turned(self.num_atoms)
        sent, inside = np.zeros(0), 0.0
        if one.copies:
            places = np.arange(1, members + 1)
            sent = np.append(0.0, share_sent(places, one.copies))
            inside = float(sent[members]) / KERNEL_SHARE
        number = self.step.add_exchange(
            groups.start,
            groups.entry,
            found.members.start,
            found.members.entry,
            found.weight,
            found.lanes,
            members,
            np.array([float(each.size_bytes) / members for each in questions]),
            sent,
            inside,
        )
        return Added(number, found.of_row, found.count)

    def _messages(self, question: Question) -> Added:
        senders, receivers = self._atom[question.members], question.receivers
        if receivers is None:  # around each row
            others = np.roll(senders, -1, axis=1)
        else:
            others = self._atom[receivers]
        found = pairs_of_atoms(senders.ravel(), others.ravel())
        ends = found.members.entry.reshape(-1, 2)
        groups = found.members.turned(self.num_atoms)
        number = self.step.add_messages(
            groups.start,
            groups.entry,
            np.ascontiguousarray(ends[:, 0]),
            np.ascontiguousarray(ends[:, 1]),
            found.lanes,
            float(question.size_bytes),
            self._thin(),
        )
        return Added(number, found.of_row, found.count)

    def _rings(self, questions: list[Question]) -> Added:
        one = questions[0]
        members = one.members.shape[1]
        is_even = self.sites.scale_up == 0
        found = groups_of_atoms(
            self._atom[one.members], in_turn=True, every=not is_even
        )
        groups = found.members.turned(self.num_atoms)
        moved, outside, inside = ring_forms(members)
        buffers = np.array([float(each.size_bytes) for each in questions])
        passes = 1.0 if one.kind == "gather" else 2.0
        parts = (
            groups.start,
            groups.entry,
            found.members.start,
            found.members.entry,
            found.weight,
            found.lanes,
            members,
            buffers,
            passes * moved,
            passes * outside,
            passes * inside,
            is_even,
            self._thin(),
        )
        if one.kind == "gather":
            number = self.step.add_rings(*parts)
        else:
            ways = all_reduce_forms(
                members, buffers, one.algorithm, in_racks=self.fabric.has_rack_switch
            )
            number = self.step.add_all_reduces(*parts, *ways)
        return Added(number, found.of_row, found.count)

    def _thin(self) -> Numbers:
        """Of the tiers that matter, those whose uplinks carry less than what sends."""
        fabric, found = self.fabric, []
        for i, t in enumerate(self.sites.tiers.tolist()):
            if i <= self.sites.scale_up:
                continue
            child = fabric.child_domain_of_gpu(t)
            capacity = fabric.uplink_capacity[t]
            gpus = np.bincount(child, minlength=len(capacity))
            fastest = fabric.bandwidth[t:].max()
            if (capacity < gpus * fastest * (1 - 1e-12)).any():
                found.append(i)
        return np.array(found, dtype=np.int32)


def ring_forms(members: int) -> tuple[float, FloatArray, FloatArray]:
    """What a ring makes of its route, from its form.

    Bytes on every edge for a byte of the buffer; steps between domains and inside them,
    for each number of domains from 0 on.
    """
    moved = float(ring_pass(_route(members, 1, inner_pace=1.0), 1.0).transfer[0])
    outside, inside = np.zeros(members + 1), np.zeros(members + 1)
    for n in range(1, members + 1):
        outside[n] = ring_pass(_route(members, n, outer_latency=1.0), 0.0).latency[0]
        inside[n] = ring_pass(_route(members, n, inner_latency=1.0), 0.0).latency[0]
    return moved, outside, inside


def all_reduce_forms(
    members: int, buffers: FloatArray, algorithm: str, *, in_racks: bool
) -> tuple[list[bool], FloatArray, FloatArray, FloatArray, FloatArray, int]:
    """What an all-reduce makes of its route, from its forms.

    Which may be run, and how they are chosen; by number of domains, buffers out of the
    busiest domain of a tree, as they are and as the form of a tree counts them; what a
    switch makes of a byte inside and between domains, and its steps; the bytes that it
    takes the time of, by size, domains and members of the smallest domain; how many of
    those members matter.
    """
    is_tuned, known = algorithm == "auto", all_reduces(algorithm)
    ways = [*(name in known for name in ("ring", "tree", "nvls")), is_tuned, in_racks]
    domains = np.arange(members + 1)
    trees = tree_buffers(domains)
    counted = trees
    if "tree" in known:
        some, one = np.maximum(domains, 1), np.ones(members + 1)
        route = Route(members, some, some, False, 0 * one, one, 0 * one, 0 * one)
        counted = known["tree"](route, 1.0).transfer
    switch = RACK_SWITCH if in_racks else NODE_SWITCH
    shares = np.array([1 / switch.efficiency, 1 / switch.between, NVLS_STEPS])
    heads = min(NVLS_HEADS, members)
    switched = np.zeros((len(buffers), members + 1, heads + 1))
    if "nvls" in known:
        number, few = (
            cells.ravel()
            for cells in np.meshgrid(
                domains[1:], np.arange(1, heads + 1), indexing="ij"
            )
        )
        one = np.ones(len(number))
        route = Route(members, number, few, in_racks, 0 * one, one, 0 * one, 0 * one)
        for size, buffer in enumerate(buffers.tolist()):
            form = nvls_all_reduce(route, buffer).transfer / tree_buffers(number)
            switched[size, 1:, 1:] = form.reshape(members, heads)
    return ways, trees, counted, shares, switched.ravel(), heads


def _route(members: int, domains: int, **values: float) -> Route:
    """The way of a group of which only some things count."""
    names = ("inner_pace", "outer_pace", "inner_latency", "outer_latency")
    pace = [np.array([values.get(name, 0.0)]) for name in names]
    some = np.array([max(members // domains, 1)])
    return Route(members, np.array([domains]), some, False, *pace)
