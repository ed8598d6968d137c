"""What the search on the busiest ports tries, compiled by numba.

The same as numpy does in `port_moves.py`, from the same random numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from placer.solve.improve.port_tables import EXCHANGE, MOVE, SWAP

if TYPE_CHECKING:
    import numpy.typing as npt

    from placer.solve.improve.port_tables import Seats, Shares, Tables

    IntArray = npt.NDArray[np.int64]
    FloatArray = npt.NDArray[np.float64]


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
            begin, held = seats.first[there], seats.held[there]
            back = min(number, held)
            coming[:back] = seats.inside[begin : begin + back]
        else:
            somebody = _somebody(seats, there, drawn[3, row])
            back = _grow(tables, seats.home, coming, somebody, number, others)
        # Free room is taken first, now and then.
        taken = 0
        if drawn[4, row] < shares.into_room:
            taken = min(seats.free[there], number)
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
def _take_busy(seats: Seats, shares: Shares, unit: IntArray, drawn: FloatArray) -> None:
    """Begin some changes with a busy unit."""
    for row in range(int(len(unit) * shares.busy)):
        busy = np.searchsorted(seats.busy_until, drawn[row])
        unit[row] = min(busy, len(seats.home) - 1)


@njit(cache=True)
def _somebody(seats: Seats, domain: int, drawn: float) -> int:
    """Somebody in a domain, as it was at the last look."""
    at = seats.first[domain] + int(drawn * seats.held[domain])
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
