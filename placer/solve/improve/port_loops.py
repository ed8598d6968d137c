"""The inner loops of the search on the busiest ports, compiled by numba.

They do what numpy does in `port_loads.py` and `port_search.py`, with sums in the same
order, so that both walk the same way, to the last bit. Shapes as there: U units, F
flows, L loads, D domains, K changes of up to M units each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from placer.solve.improve.move_loops import clusters, singles
from placer.solve.improve.port_tables import (
    SHARES,
    UNCLAIMED,
    Pricing,
    Seats,
    Tables,
)

if TYPE_CHECKING:
    from placer.arrays import BoolArray, FloatArray, IntArray

# Loads of a change that are sorted by insertion: more are worth a call.
FEW = 48


@njit(cache=True)
def priced(
    tables: Tables, home: IntArray, units: IntArray, new: IntArray, pricing: Pricing
) -> tuple[FloatArray, IntArray, IntArray, FloatArray]:
    """What each change adds to the sum; then the entries of `Added`."""
    changes, parts = len(units), 2 + 2 * len(tables.uplink_tier)
    most = 0
    for unit in units.ravel():
        most += tables.degree[unit]
    of, loads = np.empty((2, 2 * parts * most), np.int64)
    seconds = np.empty(2 * parts * most)
    total = np.zeros(len(pricing.busy))
    stamp = np.full(len(pricing.busy), -1)
    after, moving = home.copy(), np.full(len(home), -1)
    # Flows of a change, and the domains and tier of each before and after.
    touched, ways = np.empty(most, np.int64), np.empty((most, 6), np.int64)
    delta = np.zeros(changes)
    end = 0
    for change in range(changes):
        movers = units[change]
        _move(movers, new[change], change, after, moving)
        flows = _touch(tables, home, movers, after, moving, change, touched, ways)
        begin = end
        for part in range(parts):
            for nth, flow in enumerate(touched[:flows]):
                way, side = ways[nth], part % 2
                old, less = _load(tables, part, flow, way[side], way[2])
                now, more = _load(tables, part, flow, way[3 + side], way[5])
                if less != more or (old != now and less > 0):
                    end = _add(old, -less, change, end, stamp, loads, total)
                    end = _add(now, more, change, end, stamp, loads, total)
        _sort(loads[begin:end])
        for entry in range(begin, end):
            load = loads[entry]
            of[entry], seconds[entry] = change, total[load]
            before = pricing.busy[load]
            more = _cost(pricing, load, before + total[load])
            delta[change] += more - _cost(pricing, load, before)
        _move(movers, home[movers], change, after, moving)
    return delta, of[:end], loads[:end], seconds[:end]


@njit(cache=True)
def _move(
    movers: IntArray, to: IntArray, change: int, after: IntArray, moving: IntArray
) -> None:
    """Put those that move into other domains."""
    for nth, unit in enumerate(movers):
        if unit >= 0:
            after[unit], moving[unit] = to[nth], change


@njit(cache=True)
def _touch(
    tables: Tables,
    home: IntArray,
    movers: IntArray,
    after: IntArray,
    moving: IntArray,
    change: int,
    touched: IntArray,
    ways: IntArray,
) -> int:
    """Fill in the flows of those that move, and their ways; how many there are."""
    flows = 0
    for unit in movers:
        begin = tables.first[unit]
        for flow in tables.flows[begin : begin + tables.degree[unit]]:
            sender, receiver = tables.ends[0, flow], tables.ends[1, flow]
            # A flow between two that move is counted with the one who sends.
            if sender == unit or moving[sender] != change:
                touched[flows], way = flow, ways[flows]
                way[0], way[1] = home[sender], home[receiver]
                way[2] = _tier(tables, way[0], way[1])
                way[3], way[4] = after[sender], after[receiver]
                way[5] = _tier(tables, way[3], way[4])
                flows += 1
    return flows


@njit(cache=True)
def _add(
    load: int,
    seconds: float,
    change: int,
    end: int,
    stamp: IntArray,
    loads: IntArray,
    total: FloatArray,
) -> int:
    """Add seconds to a load; where its entries end then."""
    if stamp[load] != change:
        stamp[load], total[load], loads[end] = change, 0.0, load
        end += 1
    total[load] += seconds
    return end


@njit(cache=True)
def _tier(tables: Tables, one: int, other: int) -> int:
    """Tier at which two domains meet."""
    tier = tables.tier
    for row in range(len(tables.above)):
        if tables.above[row, one] != tables.above[row, other]:
            tier += 1
    return tier


@njit(cache=True)
def _load(
    tables: Tables, part: int, flow: int, end: int, tier: int
) -> tuple[int, float]:
    """A load of a flow at an end of its way over a tier, and what it adds to it."""
    size, way = tables.size_bytes[flow], part % 2
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
def applied(
    tables: Tables,
    units: IntArray,
    old: IntArray,
    new: IntArray,
    accepted: BoolArray,
    claim: IntArray,
    home: IntArray,
    free: IntArray,
    busy: FloatArray,
    of: IntArray,
    loads: IntArray,
    seconds: FloatArray,
) -> None:
    """Make accepted changes that share no unit, flow or room with an earlier one.

    ``claim`` is as large as nothing is claimed, before and after.
    """
    made = accepted.copy()
    for ask in range(3):
        for change in np.flatnonzero(accepted):
            who, here, there = units[change], old[change, 0], new[change, 0]
            _claim_all(tables, who, here, there, change, ask, claim, made)
    for change in np.flatnonzero(made):
        for nth, unit in enumerate(units[change]):
            if unit >= 0:
                home[unit] = new[change, nth]
                free[old[change, nth]] += 1
                free[new[change, nth]] -= 1
    for entry in range(len(of)):
        if made[of[entry]]:
            busy[loads[entry]] += seconds[entry]


@njit(cache=True)
def _claim_all(
    tables: Tables,
    movers: IntArray,
    here: int,
    there: int,
    change: int,
    ask: int,
    claim: IntArray,
    made: BoolArray,
) -> None:
    """Ask for all units, flows and rooms that a change needs."""
    units = len(tables.first) - 1
    back = 0
    for nth, unit in enumerate(movers):
        if unit < 0:
            back += 1 if nth < len(movers) // 2 else -1
            continue
        begin = tables.first[unit]
        _claim(claim, made, change, unit, ask)
        for flow in tables.flows[begin : begin + tables.degree[unit]]:
            _claim(claim, made, change, units + flow, ask)
    # Room is left, or taken, where fewer come back.
    if back:
        rooms = units + tables.ends.shape[1]
        _claim(claim, made, change, rooms + here, ask)
        _claim(claim, made, change, rooms + there, ask)


@njit(cache=True)
def _claim(claim: IntArray, made: BoolArray, change: int, thing: int, ask: int) -> None:
    """Claim a thing, see who was first, or give it back."""
    if ask == 0:
        claim[thing] = min(claim[thing], change)
    elif ask == 1:
        made[change] &= claim[thing] == change
    else:
        claim[thing] = UNCLAIMED


def compile_all() -> None:
    """Call every loop once, on two units in two domains."""
    one, two = np.zeros(1, np.int64), np.arange(2)
    rows, ones = np.zeros((2, 1), np.int64), np.ones(2)
    flat = np.zeros((1, 2), np.int64)
    tables = Tables(
        ends=np.array([[0], [1]]),
        port=rows.copy(),
        size_bytes=ones[:1],
        runs=ones[:1],
        together=one,
        flows=np.zeros(2, np.int64),
        first=np.array([0, 1, 2]),
        degree=np.array([1, 1, 0]),
        ports=1,
        above=two.reshape(1, 2).copy(),
        tier=0,
        scale_up_tier=0,
        bandwidth=ones,
        latency=ones,
        factor=ones,
        uplink_tier=one + 1,
        uplink_first=one + 2,
        uplink_children=one + 2,
        uplink_child=flat,
        uplink_pace=np.ones((1, 2)),
    )
    kind = np.zeros(6, np.int64)
    pricing = Pricing(np.ones(6), kind, ones[:1], ones[:1], ones[:1], 0)
    held, free = np.ones(2, np.int64), np.zeros(2, np.int64)
    seats = Seats(two.copy(), two, held, two, free, flat[0], ones)
    begun = SHARES, two.copy(), two, np.zeros((6, 2))
    units, old, new, _ = singles(tables, seats, *begun)
    delta, *entries = priced(tables, seats.home, units, new, pricing)
    columns = units, old, new, delta < 0
    claim, home = np.full(5, UNCLAIMED), seats.home
    applied(tables, *columns, claim, home, free, pricing.busy, *entries)
    clusters(tables, seats, *begun, two, np.zeros((2, 2, 2)))
