"""The inner loops of the search on the busiest ports, compiled by numba.

Each does what numpy does in `port_loads.py`, `port_moves.py` and `port_search.py`, with
sums in the same order, so that both walk the same way, to the last bit. Shapes as
there: U units, F flows, L loads, D domains, K changes of up to M units each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from placer.solve.improve.port_tables import UNCLAIMED

if TYPE_CHECKING:
    import numpy.typing as npt

    from placer.solve.improve.port_tables import Pricing, Tables

    IntArray = npt.NDArray[np.int64]
    FloatArray = npt.NDArray[np.float64]
    BoolArray = npt.NDArray[np.bool_]

# Loads of a change that are sorted by insertion: more are worth a call.
FEW = 48


@njit(cache=True)
def priced(
    tables: Tables, home: IntArray, units: IntArray, new: IntArray, pricing: Pricing
) -> tuple[FloatArray, IntArray, IntArray, FloatArray]:
    """What each change adds to the sum; then the entries of `Added`."""
    changes = len(units)
    parts = 2 + 2 * len(tables.uplink_tier)
    most = 0
    for change in range(changes):
        for unit in units[change]:
            if unit >= 0:
                most += tables.degree[unit]
    of, loads = np.empty((2, 2 * parts * most), np.int64)
    seconds = np.empty(2 * parts * most)
    total = np.zeros(len(pricing.busy))
    stamp = np.full(len(pricing.busy), -1)
    after, moving = home.copy(), np.full(len(home), -1)
    touched = np.empty(most, np.int64)
    delta = np.zeros(changes)
    entries = 0
    for change in range(changes):
        for nth, unit in enumerate(units[change]):
            if unit >= 0:
                after[unit], moving[unit] = new[change, nth], change
        flows = 0
        for unit in units[change]:
            if unit < 0:
                continue
            begin = tables.first[unit]
            for flow in tables.flows[begin : begin + tables.degree[unit]]:
                sender = tables.ends[0, flow]
                # A flow between two that move is counted with the one who sends.
                if sender == unit or moving[sender] != change:
                    touched[flows] = flow
                    flows += 1
        begin = entries
        for part in range(parts):
            for flow in touched[:flows]:
                sender, receiver = tables.ends[0, flow], tables.ends[1, flow]
                old, less = _load(tables, part, flow, home[sender], home[receiver])
                now, more = _load(tables, part, flow, after[sender], after[receiver])
                if old == now and less == more:
                    continue
                for load, added in ((old, -less), (now, more)):
                    if stamp[load] != change:
                        stamp[load], total[load] = change, 0.0
                        loads[entries] = load
                        entries += 1
                    total[load] += added
        _sort(loads[begin:entries])
        for entry in range(begin, entries):
            load = loads[entry]
            of[entry], seconds[entry] = change, total[load]
            before = pricing.busy[load]
            delta[change] += _cost(pricing, load, before + total[load]) - _cost(
                pricing, load, before
            )
        for unit in units[change]:
            if unit >= 0:
                after[unit] = home[unit]
    return delta, of[:entries], loads[:entries], seconds[:entries]


@njit(cache=True)
def _load(
    tables: Tables, part: int, flow: int, source: int, target: int
) -> tuple[int, float]:
    """A load on the way of a flow between two domains, and what it adds to it."""
    tier = tables.tier
    for row in range(len(tables.above)):
        if tables.above[row, source] != tables.above[row, target]:
            tier += 1
    size, way = tables.size_bytes[flow], part % 2
    end = target if way else source
    if part < 2:
        shift = tables.ports if tier <= tables.scale_up_tier else 0
        waits = tables.runs[flow] * tables.latency[tier]
        port_s = size / tables.bandwidth[tier] / tables.factor[end]
        return tables.port[way, flow] + shift, port_s + waits
    uplink = part // 2 - 1
    crosses = size if tier >= tables.uplink_tier[uplink] else 0.0
    children = tables.uplink_children[uplink]
    first = tables.uplink_first[uplink] + 2 * children * tables.together[flow]
    load = first + way * children + tables.uplink_child[uplink, end]
    return load, crosses * tables.uplink_pace[uplink, end]


@njit(cache=True)
def _cost(pricing: Pricing, load: int, busy: float) -> float:
    """Power of the excess of a load, relative to the best of its kind."""
    kind = pricing.kind[load]
    over = max(busy - pricing.target[kind], 0.0) / pricing.scale[kind]
    for _ in range(pricing.doublings):
        over *= over
    return pricing.share[kind] * over


@njit(cache=True)
def _sort(values: IntArray) -> None:
    """Sort in place."""
    if len(values) > FEW:
        values.sort()
        return
    for place in range(1, len(values)):
        value, at = values[place], place
        while at and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@njit(cache=True)
def independent(
    tables: Tables,
    units: IntArray,
    old: IntArray,
    new: IntArray,
    accepted: BoolArray,
    claim: IntArray,
) -> BoolArray:
    """Accepted changes that share no unit, flow or room with an earlier one.

    ``claim`` is as large as nothing is claimed, before and after.
    """
    made = accepted.copy()
    for ask in range(3):
        for change in np.flatnonzero(accepted):
            half = units.shape[1] // 2
            nobody = 0
            for nth, unit in enumerate(units[change]):
                if unit < 0:
                    nobody += 1 if nth < half else -1
                    continue
                begin = tables.first[unit]
                _claim(claim, made, change, unit, ask)
                for flow in tables.flows[begin : begin + tables.degree[unit]]:
                    thing = len(tables.first) - 1 + flow
                    _claim(claim, made, change, thing, ask)
            # Room is left, or taken, where fewer come back.
            if nobody:
                rooms = len(tables.first) - 1 + tables.ends.shape[1]
                _claim(claim, made, change, rooms + old[change, 0], ask)
                _claim(claim, made, change, rooms + new[change, 0], ask)
    return made


@njit(cache=True)
def _claim(
    claim: IntArray, made: BoolArray, change: int, thing: int, ask: int
) -> None:
    """Claim a thing, see who was first, or give it back."""
    if ask == 0:
        claim[thing] = min(claim[thing], change)
    elif ask == 1:
        made[change] &= claim[thing] == change
    else:
        claim[thing] = UNCLAIMED


@njit(cache=True)
def grown(
    tables: Tables, home: IntArray, seed: IntArray, size: IntArray, drawn: FloatArray
) -> IntArray:
    """Seeds and neighbours from their domains, as `PortMoves` grows them."""
    found = np.full((len(seed), 1 + drawn.shape[0] // 2), -1)
    for row in range(len(seed)):
        found[row, 0] = seed[row]
        number = 1
        for turn in range(drawn.shape[0]):
            unit = found[row, int(drawn[turn, 0, row] * number)]
            nth = int(drawn[turn, 1, row] * tables.degree[unit])
            flow = tables.flows[min(tables.first[unit] + nth, len(tables.flows) - 1)]
            one = tables.ends[0, flow]
            if one == unit:
                one = tables.ends[1, flow]
            if number < size[row] and home[one] == home[seed[row]]:
                known = False
                for other in found[row, :number]:
                    known |= other == one
                if not known:
                    found[row, number] = one
                    number += 1
        found[row, size[row] :] = -1
    return found
