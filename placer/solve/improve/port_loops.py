"""The inner loops of the search on the busiest ports, compiled by numba.

Each does what numpy does in `port_loads.py`, `port_moves.py` and `port_search.py`, with
sums in the same order, so that both walk the same way, to the last bit. Shapes as
there: U units, F flows, L loads, D domains, K changes of up to M units each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from placer.solve.improve.port_tables import (
    EXCHANGE,
    MOVE,
    SHARES,
    SWAP,
    UNCLAIMED,
    Pricing,
    Seats,
    Shares,
    Tables,
)

if TYPE_CHECKING:
    import numpy.typing as npt

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
    # Flows, and the domains and tier of each before and after.
    touched, ways = np.empty(most, np.int64), np.empty((most, 6), np.int64)
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
                sender, receiver = tables.ends[0, flow], tables.ends[1, flow]
                # A flow between two that move is counted with the one who sends.
                if sender == unit or moving[sender] != change:
                    touched[flows] = flow
                    way = ways[flows]
                    way[0], way[1] = home[sender], home[receiver]
                    way[2] = _tier(tables, way[0], way[1])
                    way[3], way[4] = after[sender], after[receiver]
                    way[5] = _tier(tables, way[3], way[4])
                    flows += 1
        begin = entries
        for part in range(parts):
            for nth, flow in enumerate(touched[:flows]):
                way, end = ways[nth], part % 2
                old, less = _load(tables, part, flow, way[end], way[2])
                now, more = _load(tables, part, flow, way[3 + end], way[5])
                if less == more and (old == now or less == 0):
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
            half = units.shape[1] // 2
            nobody = 0
            for nth, unit in enumerate(units[change]):
                if unit < 0:
                    nobody += 1 if nth < half else -1
                    continue
                begin = tables.first[unit]
                _claim(claim, made, change, unit, ask)
                for flow in tables.flows[begin : begin + tables.degree[unit]]:
                    _claim(claim, made, change, len(home) + flow, ask)
            # Room is left, or taken, where fewer come back.
            if nobody:
                rooms = len(home) + tables.ends.shape[1]
                _claim(claim, made, change, rooms + old[change, 0], ask)
                _claim(claim, made, change, rooms + new[change, 0], ask)
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
def singles(
    tables: Tables,
    seats: Seats,
    shares: Shares,
    unit: IntArray,
    anywhere: IntArray,
    drawn: FloatArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The columns of `Changes` in which units move, or two change places."""
    count = len(unit)
    units, old, new = np.empty((3, count, 2), np.int64)
    move = np.empty(count, np.int64)
    _take_busy(seats, shares, unit, drawn[0])
    made = 0
    for row in range(count):
        one = unit[row]
        here, there = seats.home[one], anywhere[row]
        if drawn[2, row] >= shares.far:
            there = seats.home[_neighbour(tables, one, drawn[1, row])]
        if here == there or seats.enclosure[here] != seats.enclosure[there]:
            continue
        held = seats.count[there]
        alone = seats.free[there] > 0 and (drawn[4, row] < shares.into_room or held == 0)
        partner = _somebody(seats, there, drawn[3, row])
        if not alone and (held == 0 or seats.home[partner] != there):
            continue
        units[made, 0], units[made, 1] = one, -1 if alone else partner
        old[made, 0], old[made, 1] = here, there
        new[made, 0], new[made, 1] = there, here
        move[made] = MOVE if alone else SWAP
        made += 1
    return units[:made], old[:made], new[:made], move[:made]


@njit(cache=True)
def clusters(
    tables: Tables,
    seats: Seats,
    shares: Shares,
    unit: IntArray,
    anywhere: IntArray,
    drawn: FloatArray,
    size: IntArray,
    grow: FloatArray,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The columns of `Changes` in which clusters change places."""
    count, most = len(unit), 1 + grow.shape[1] // 2
    units = np.full((count, 2 * most), -1)
    old, new = np.empty((2, count, 2 * most), np.int64)
    _take_busy(seats, shares, unit, drawn[0])
    made = 0
    for row in range(count):
        here, there = seats.home[unit[row]], anywhere[row]
        if drawn[2, row] >= shares.far:
            there = seats.home[_neighbour(tables, unit[row], drawn[1, row])]
        if here == there or seats.enclosure[here] != seats.enclosure[there]:
            continue
        going, coming = units[made, :most], units[made, most:]
        own, others = grow[0, :, :, row], grow[1, :, :, row]
        number = _grow(tables, seats.home, going, unit[row], size[row], own)
        if drawn[5, row] < shares.loose:
            begin, held = seats.first[there], seats.count[there]
            back = min(number, held)
            coming[:back] = seats.inside[begin : begin + back]
        else:
            somebody = _somebody(seats, there, drawn[3, row])
            back = _grow(tables, seats.home, coming, somebody, number, others)
        # Free room is taken first, now and then.
        taken = min(seats.free[there], number) if drawn[4, row] < shares.into_room else 0
        back = min(back, number - taken)
        coming[back:] = -1
        going[min(number, back + taken) :] = -1
        fits = going[0] >= 0
        for one in coming[:back]:
            fits &= seats.home[one] == there
        if fits:
            old[made, :most], old[made, most:] = here, there
            new[made, :most], new[made, most:] = there, here
            made += 1
        else:
            units[made] = -1
    return units[:made], old[:made], new[:made], np.full(made, EXCHANGE)


@njit(cache=True)
def _take_busy(
    seats: Seats, shares: Shares, unit: IntArray, drawn: FloatArray
) -> None:
    """Begin some changes with a busy unit."""
    for row in range(int(len(unit) * shares.busy)):
        busy = np.searchsorted(seats.busy_until, drawn[row])
        unit[row] = min(busy, len(seats.home) - 1)


@njit(cache=True)
def _somebody(seats: Seats, domain: int, drawn: float) -> int:
    """Somebody in a domain, as it was at the last look."""
    at = seats.first[domain] + int(drawn * seats.count[domain])
    return seats.inside[min(at, len(seats.home) - 1)]


@njit(cache=True)
def _neighbour(tables: Tables, unit: int, drawn: float) -> int:
    """Somebody whom a unit sends to, or receives from, as it is drawn."""
    at = tables.first[unit] + int(drawn * tables.degree[unit])
    flow = tables.flows[min(at, len(tables.flows) - 1)]
    if tables.ends[0, flow] == unit:
        return tables.ends[1, flow]
    return tables.ends[0, flow]


@njit(cache=True)
def _grow(
    tables: Tables,
    home: IntArray,
    found: IntArray,
    seed: int,
    size: int,
    drawn: FloatArray,
) -> int:
    """Fill in a seed and neighbours from its domain; how many there are."""
    found[0] = seed
    number = 1
    for which, who in drawn:
        one = _neighbour(tables, found[int(which * number)], who)
        if number < size and home[one] == home[seed]:
            known = False
            for other in found[:number]:
                known |= other == one
            if not known:
                found[number] = one
                number += 1
    return number


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
    seats = Seats(two.copy(), two, np.ones(2, np.int64), two, one.repeat(2), flat[0], ones)
    begun = SHARES, two.copy(), two, np.zeros((6, 2))
    units, old, new, _ = singles(tables, seats, *begun)
    delta, *entries = priced(tables, seats.home, units, new, pricing)
    columns = tables, units, old, new, delta < 0, np.full(5, UNCLAIMED)
    applied(*columns, seats.home, seats.free, pricing.busy, *entries)
    clusters(tables, seats, *begun, two, np.zeros((2, 2, 2, 2)))
