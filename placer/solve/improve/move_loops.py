"""What the search on the busiest ports tries, compiled by numba.

The same as numpy does in `port_moves.py`, from the same random numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from placer.solve.improve.port_tables import EXCHANGE, MOVE, SWAP

if TYPE_CHECKING:
    from placer.arrays import FloatArray, IntArray
    from placer.solve.improve.port_tables import Seats, Shares, Tables


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
        held = seats.held[there]
        alone = drawn[4, row] < shares.into_room or held == 0
        alone &= seats.free[there] > 0
        if not alone and held == 0:
            continue
        partner = -1 if alone else _in_turn(seats, there, drawn[3, row], 0)
        units[made, 0], units[made, 1] = one, partner
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
    count, most = len(unit), 1 + len(grow) // 2
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
        own = grow[:, :, row]
        number = _grow(tables, seats.home, going, unit[row], size[row], own)
        # Free room is taken first, now and then.
        taken = 0
        if drawn[4, row] < shares.into_room:
            taken = min(seats.free[there], number)
        back = min(number - taken, seats.held[there])
        begin = drawn[3, row] if drawn[5, row] >= shares.loose else 0.0
        for place in range(back):
            coming[place] = _in_turn(seats, there, begin, place)
        going[back + taken :] = -1
        if going[0] >= 0:
            old[made, :most], old[made, most:] = here, there
            new[made, :most], new[made, most:] = there, here
            made += 1
        else:
            units[made] = -1
    return units[:made], old[:made], new[:made], np.full(made, EXCHANGE)


@njit(cache=True)
def _take_busy(seats: Seats, shares: Shares, unit: IntArray, drawn: FloatArray) -> None:
    """Begin some changes with a busy unit."""
    for row in range(int(len(unit) * shares.busy)):
        busy = np.searchsorted(seats.busy_until, drawn[row])
        unit[row] = min(busy, len(seats.home) - 1)


@njit(cache=True)
def _in_turn(seats: Seats, domain: int, drawn: float, nth: int) -> int:
    """The n-th in a domain after somebody, in a round, loosest first."""
    held = seats.held[domain]
    place = (int(drawn * held) + nth) % held
    return seats.inside[seats.first[domain] + place]


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
