"""Many kinds of groups priced together, each as if it were alone.

Each kind has the network to itself, so each is put on a copy of the machine of its own
(`Copies`); the hops of a relay, which are made in turn, on one each. Kinds with
communicators of one size that run the same collective then take one call. Shapes: K
kinds, T tiers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from placer.arrays import FloatArray, IntArray
from placer.cost.copies import Copies
from placer.cost.links import LinkLoad, weighted_counts
from placer.cost.network import PlacedNetwork
from placer.cost.traffic import Traffic

if TYPE_CHECKING:
    from placer.cost.communicators import CollectiveCost
    from placer.cost.exchange import ExchangeCost
    from placer.cost.fabric import Fabric
    from placer.job.model import Collectives, Group

# Members of all groups of one call: more take much memory.
MEMBERS_AT_ONCE = 1_000_000


class _Part(NamedTuple):
    """The communicators of one size of a kind."""

    kind: int
    rows: list[int]
    members: IntArray


class _Sent(NamedTuple):
    """What runs sent: of each kind on each tier, and over uplinks of one tier.

    Attributes
    ----------
    kind : ndarray, shape (entries,)
    child : ndarray, shape (entries,)
        Child domain of the machine.
    up, down : ndarray, shape (entries,), bytes a step
    """

    kind: IntArray
    child: IntArray
    up: FloatArray
    down: FloatArray


@dataclass(frozen=True, eq=False)
class KindTimes:
    """What kinds of groups cost on a placed network.

    Attributes
    ----------
    group_seconds : list of ndarray, each shape (communicators,), s
        One run of each communicator of each kind.
    """

    fabric: Fabric
    group_seconds: list[FloatArray]
    _bytes: list[tuple[IntArray, FloatArray]]
    _sent: dict[int, list[_Sent]]

    def traffic(self, kind: int) -> Traffic | None:
        """What a kind sends in a step; None where all its groups are single ranks."""
        if not self._bytes_of[0][kind]:
            return None
        up, down = self._loads(kind, "up"), self._loads(kind, "down")
        return Traffic(self._bytes_of[1][kind], LinkLoad(up, down))

    def _loads(self, kind: int, way: str) -> list[FloatArray]:
        loads: list[FloatArray] = [np.empty(0)] * self.fabric.num_tiers
        for t, (sent, first) in self._by_kind.items():
            rows = slice(first[kind], first[kind + 1])
            count = len(self.fabric.uplink_capacity[t])
            loads[t] = weighted_counts(sent.child[rows], getattr(sent, way)[rows], count)
        return loads

    @cached_property
    def _bytes_of(self) -> tuple[IntArray, FloatArray]:
        """Runs of each kind, and bytes by tier, shape (K, T); in the order they run."""
        number, tiers = len(self.group_seconds), self.fabric.num_tiers
        kind = np.concatenate([kinds for kinds, _ in self._bytes])
        sent = np.concatenate([values for _, values in self._bytes], axis=1)
        total = [weighted_counts(kind, sent[t], number) for t in range(tiers)]
        return np.bincount(kind, minlength=number), np.stack(total, axis=1)

    @cached_property
    def _by_kind(self) -> dict[int, tuple[_Sent, IntArray]]:
        """Entries of each tier in the order of kinds, and where those of each begin."""
        found = {}
        for t, parts in self._sent.items():
            joined = [np.concatenate(values) for values in zip(*parts, strict=True)]
            order = np.argsort(joined[0], kind="stable")
            sent = _Sent(*(values[order] for values in joined))
            first = np.searchsorted(sent.kind, np.arange(len(self.group_seconds) + 1))
            found[t] = sent, first
        return found


def kind_times(
    network: PlacedNetwork, groups: Sequence[Group], algorithms: Collectives
) -> KindTimes:
    """What each kind costs when no other runs."""
    fabric = network.fabric
    seconds = [np.zeros(len(group.ranks)) for group in groups]
    sent: dict[int, list[_Sent]] = {t: [] for t in fabric.scale_out_tiers}
    sent_bytes: list[tuple[IntArray, FloatArray]] = []
    for collective, parts in _batches(groups):
        sizes = np.array([groups[part.kind].size_bytes for part in parts])
        relays = collective == "relay"
        runs = parts[0].members.shape[1] - 1 if relays else 1
        copy = np.repeat(np.arange(len(parts)), [len(part.members) for part in parts])
        members = np.concatenate([part.members for part in parts])
        gpus = network.gpu_of_rank[members]
        if relays:
            cost, copies = _relayed(fabric, gpus, copy, sizes)
            each = cost.seconds.reshape(len(members), runs)
        else:
            copies, place = Copies.of(
                fabric, gpus.ravel(), np.repeat(copy, gpus.shape[1]), len(parts)
            )
            on = PlacedNetwork(copies, np.arange(len(copies.gpu)))
            cost = _collective(on, collective, place.reshape(gpus.shape), sizes, algorithms)
            each = cost.seconds.reshape(len(members), -1)
        first = 0
        for part in parts:
            own = each[first : first + len(part.rows)]
            first += len(part.rows)
            if relays:
                # As the sum of arrays, one a hop, adds them up.
                own = np.sum([*own.T], axis=0)[:, None]
            seconds[part.kind][part.rows] = own.max(axis=1)
        kind = np.repeat([part.kind for part in parts], runs)
        steps = np.array([groups[k].per_step for k in kind.tolist()])
        sent_bytes.append((kind, cost.bytes_by_tier * steps))
        for t, found in sent.items():
            of, child = copies.children[t]
            up, down = cost.load.up[t] * steps[of], cost.load.down[t] * steps[of]
            found.append(_Sent(kind[of], child, up, down))
    return KindTimes(fabric, seconds, sent_bytes, sent)


def _batches(groups: Sequence[Group]) -> Iterator[tuple[str, list[_Part]]]:
    """Collective, and parts of kinds with communicators of one size, small ones first.

    Kinds are in order.
    """
    found: defaultdict[tuple[int, str], list[_Part]] = defaultdict(list)
    for kind, group in enumerate(groups):
        by_size: defaultdict[int, list[int]] = defaultdict(list)
        for index, ranks in enumerate(group.ranks):
            by_size[len(ranks)].append(index)
        for size, rows in by_size.items():
            if size > 1:
                members = np.array([group.ranks[row] for row in rows])
                found[size, group.collective].append(_Part(kind, rows, members))
    for (_, collective), parts in sorted(found.items(), key=lambda entry: entry[0]):
        taken: list[_Part] = []
        count = 0
        for part in parts:
            if taken and count + part.members.size > MEMBERS_AT_ONCE:
                yield collective, taken
                taken, count = [], 0
            taken.append(part)
            count += part.members.size
        yield collective, taken


def _relayed(
    fabric: Fabric, gpus: IntArray, copy: IntArray, sizes: FloatArray
) -> tuple[ExchangeCost, Copies]:
    """The hops of relays, those of each row one after the other; a copy for each."""
    hops = gpus.shape[1] - 1
    ends = np.stack((gpus[:, :-1], gpus[:, 1:]))
    of_hop = copy[:, None] * hops + np.arange(hops)
    copies, place = Copies.of(
        fabric,
        ends.ravel(),
        np.broadcast_to(of_hop, ends.shape).ravel(),
        len(sizes) * hops,
    )
    on = PlacedNetwork(copies, np.arange(len(copies.gpu)))
    senders, receivers = place.reshape(ends.shape)
    each = np.broadcast_to(sizes[copy][:, None], of_hop.shape)
    return on.send(senders.ravel(), receivers.ravel(), each.ravel()), copies


def _collective(
    network: PlacedNetwork,
    name: str,
    members: IntArray,
    sizes: FloatArray,
    algorithms: Collectives,
) -> CollectiveCost | ExchangeCost:
    """One run of every group, all on copies of their own."""
    if name == "all_to_all":
        return network.all_to_all(members, sizes)
    if name == "send_recv":
        each = network.fabric.per_row(sizes, members)
        flows = np.broadcast_to(np.reshape(each, (-1, 1)), members[:, 1:].shape)
        return network.send(members[:, :-1], members[:, 1:], flows)
    if name == "all_reduce":
        return network.all_reduce(members, sizes, algorithms.all_reduce)
    return network.gather(members, sizes, algorithms.gather)
