"""Operations of the scorer as operations of the compiled step.

What an operation takes is worked out there for all-to-alls, messages and rings; what
groups inside one atom take, the scorer says once for every site; anything else it says
each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from placer.base.arrays import FloatArray, IntArray, row_of_number
from placer.cost.collectives import (
    NODE_SWITCH,
    NVLS_HEADS,
    NVLS_STEPS,
    RACK_SWITCH,
    Route,
    Seconds,
    all_reduces,
    nvls_all_reduce,
    ring_pass,
    share_sent,
    tree_buffers,
)
from placer.cost.custom import flows_time, group_time
from placer.cost.exchange import KERNEL_SHARE
from placer.cost.fabric import Fabric
from placer.cost.network import PlacedNetwork
from placer.cost.step import StepModel
from placer.job.traffic import Group, RankTraffic
from placer.solve.score.calls import Call
from placer.solve.score.groups import (
    AtomGroups,
    Rows,
    groups_of_atoms,
    pairs_of_atoms,
)
from placer.solve.score.slots import Sites, Slots

if TYPE_CHECKING:
    from placer.solve.score._kernel import StepTime


@dataclass(frozen=True, eq=False)
class Added:
    """An operation of the step."""

    number: int
    # (g,): group that stands for each row of a call; of messages, for each message.
    of_row: IntArray
    count: int  # groups


@dataclass(frozen=True, eq=False)
class Operations:
    """Adds the operations of a job to a step."""

    step: StepTime
    fabric: Fabric
    atoms: Slots  # ranks of atoms, and the slots that they may be on
    sites: Sites

    @cached_property
    def atom(self) -> IntArray:
        """Atom of each rank; shape (R,)."""
        return row_of_number(self.atoms.ranks)

    def add(self, calls: list[Call]) -> Added:
        """One operation for calls of the same groups, which differ in size."""
        one, sizes = calls[0], np.array([float(call.size_bytes) for call in calls])
        atoms = self.atom[one.members]
        if self.fabric.links:
            return self._by_scorer(calls)
        if one.kind in ("send", "pass_on"):  # the latter around each row
            others = np.roll(atoms, -1, axis=1)
            if one.receivers is not None:
                others = self.atom[one.receivers]
            found = pairs_of_atoms(atoms.ravel(), others.ravel())
            return self._add("messages", found, size=sizes[0])
        members = atoms.shape[1]
        if one.kind == "all_to_all":
            found = groups_of_atoms(atoms, in_turn=False, every=False)
            form = exchange_form(members, sizes, one.copies)
            return self._add("exchange", found, members=members, **form)
        inside = self.sites.scale_up >= 0 and (atoms == atoms[:, :1]).all()
        if inside and len(calls) == 1:
            return self._inside(one, atoms[:, 0])
        is_even = self.sites.scale_up == 0
        found = groups_of_atoms(atoms, in_turn=True, every=not is_even)
        passes, form = 1.0, dict[str, Any]()
        if one.kind == "all_reduce":
            in_racks = self.fabric.has_rack_switch
            passes = 2.0
            form = all_reduce_form(members, sizes, one.algorithm, in_racks=in_racks)
        return self._add(
            "all_reduces" if form else "rings",
            found,
            **ring_form(members, passes),
            **form,
            members=members,
            buffer=sizes,
            is_even=is_even,
        )

    def _add(self, sort: str, found: AtomGroups, **form: Any) -> Added:
        more = {"weight": found.weight} if sort != "messages" else {}
        number = self.step.add(
            sort, member=found.members, lanes=found.lanes, **more, **form
        )
        return Added(number, found.of_row, found.count)

    def by_scorer(
        self, count: int, sizes: int, say: Callable[[PlacedNetwork], FloatArray]
    ) -> int:
        """An operation of which the scorer says what groups take, size after size."""
        atoms, fabric = self.atoms, self.fabric  # not the step, which has it

        def scorer(slots: IntArray) -> FloatArray:
            network = PlacedNetwork(fabric, atoms.gpu_of_rank(slots))
            return np.ascontiguousarray(say(network), dtype=np.float64).ravel()

        return self.step.add("by_scorer", groups=count, sizes=sizes, scorer=scorer)

    def flows(self, traffic: RankTraffic) -> int:
        """The slowest flow of a traffic matrix."""
        if self.fabric.links:
            return self.by_scorer(
                1, 1, lambda network: np.array([flows_time(network, traffic).seconds])
            )
        return self.step.add(
            "flows",
            from_atom=self.atom[traffic.senders],
            to_atom=self.atom[traffic.receivers],
            sender=traffic.senders,
            receiver=traffic.receivers,
            size=traffic.size_bytes,
            pair_share=traffic.pair_share,
            fixed=traffic.fixed_s,
        )

    def relay(self, model: StepModel, group: Group) -> int:
        """The groups of a relay, each hop after hop."""
        if self.fabric.links:
            kinds = model.job.collectives
            return self.by_scorer(
                len(group.ranks),
                1,
                lambda network: group_time(network, group, kinds).group_seconds,
            )
        rows = Rows.of([self.atom[list(ranks)] for ranks in group.ranks])
        return self.step.add("relay", member=rows, size=float(group.size_bytes))

    def _by_scorer(self, calls: list[Call]) -> Added:
        one = calls[0]
        count = one.members.size if one.kind == "send" else len(one.members)
        number = self.by_scorer(
            count,
            len(calls),
            lambda network: np.concatenate([call.seconds(network) for call in calls]),
        )
        return Added(number, np.arange(count), count)

    def _inside(self, call: Call, atom: IntArray) -> Added:
        """Groups inside atoms: what the scorer says of a slot of each site.

        Each site has an atom of its own, as many at a time as there are with groups.
        """
        at = self.sites.of_gpu[self.atoms.gpus[:, 0]]
        seconds = np.zeros(len(self.sites.rail))
        names, slots = np.unique(at, return_index=True)
        used, number = np.unique(atom, return_inverse=True)
        most = len(used)
        for first in range(0, len(slots), most):
            some, sites = slots[first : first + most], names[first : first + most]
            gpu_of_rank = np.zeros(self.atoms.num_ranks, dtype=np.int64)
            gpu_of_rank[self.atoms.ranks[used[: len(some)]]] = self.atoms.gpus[some]
            rows = number < len(some)
            network = PlacedNetwork(self.fabric, gpu_of_rank)
            found = replace(call, members=call.members[rows]).seconds(network)
            np.maximum.at(seconds, sites[number[rows]], found)
        groups = Rows(np.arange(len(atom) + 1), atom)
        added = self.step.add("inside", member=groups, on_site=seconds)
        return Added(added, np.arange(len(atom)), len(atom))


def exchange_form(members: int, sizes: FloatArray, copies: int) -> dict[str, Any]:
    """What an all-to-all sends, of buffers of some sizes.

    Bytes to each other member; where tokens cross to each domain once, the share of
    that which does, for each number of domains from 0 on, and what arrives of it.
    """
    sent, inside = np.zeros(0), 0.0
    if copies:
        sent = np.append(0.0, share_sent(np.arange(1, members + 1), copies))
        inside = float(sent[members]) / KERNEL_SHARE
    return {"share": sizes / members, "sent": sent, "sent_inside": inside}


def ring_form(members: int, passes: float) -> dict[str, Any]:
    """What a ring makes of its route in so many passes, from its form.

    Bytes on every edge for a byte of the buffer; steps between domains and inside them,
    for each number of domains from 0 on.
    """
    domains = np.maximum(np.arange(members + 1), 1)

    def form(size: float, only: int) -> Seconds:
        """Where one of paces and latencies, inside and between domains, is 1."""
        parts = [np.full(members + 1, float(i == only)) for i in range(4)]
        return ring_pass(Route(members, domains, domains, False, *parts), size)

    return {
        "moved": float(form(1.0, 0).transfer[1]) * passes,
        "steps_inside": form(0.0, 2).latency * passes,
        "steps_outside": form(0.0, 3).latency * passes,
    }


def all_reduce_form(
    members: int, buffers: FloatArray, algorithm: str, *, in_racks: bool
) -> dict[str, Any]:
    """What an all-reduce makes of its route, from its forms.

    Which may be run, and how they are chosen; by number of domains, buffers out of the
    busiest domain of a tree, as they are and as the form of a tree counts them; what a
    switch makes of a byte inside and between domains, and its steps; the bytes that it
    takes the time of, by size, domains and members of the smallest domain; how many of
    those members matter.
    """
    known = all_reduces(algorithm)
    domains = np.arange(members + 1)
    trees = tree_buffers(domains)
    counted = trees
    if "tree" in known:
        some, one = np.maximum(domains, 1), np.ones(members + 1)
        route = Route(members, some, some, False, 0 * one, one, 0 * one, 0 * one)
        counted = known["tree"](route, 1.0).transfer
    switch = RACK_SWITCH if in_racks else NODE_SWITCH
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
    return {
        "by_ring": "ring" in known,
        "by_tree": "tree" in known,
        "by_switch": "nvls" in known,
        "is_tuned": algorithm == "auto",
        "in_racks": in_racks,
        "tree_buffers": trees,
        "buffers": counted,
        "inside_share": 1 / switch.efficiency,
        "between_share": 1 / switch.between,
        "switch_steps": NVLS_STEPS,
        "switched": switched.ravel(),
        "heads": heads,
    }
