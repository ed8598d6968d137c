"""How many sets each outer domain takes, so that few of their units are cut.

A set lies in one outer domain, and is made of units of which an inner domain holds some
whole. Shapes: L outer domains.
"""

from __future__ import annotations

import numpy as np

from placer.arrays import IntArray


def set_size(label: IntArray, unit: int) -> int | None:
    """Ranks of a set, None unless all are alike and hold a unit of ranks at least."""
    sizes = np.unique(np.unique(label, return_counts=True)[1])
    return int(sizes[0]) if len(sizes) == 1 and sizes[0] >= unit else None


def sets_cut_least(whole: IntArray, held: IntArray, each: int, count: int) -> IntArray:
    """Sets of each outer domain with the fewest units cut; shape (L,).

    Each set more cuts no fewer units of its domain than the one before, so those that
    cut the fewest are taken one by one. Fewer than asked for where no more fit.

    Parameters
    ----------
    whole, held : ndarray, shape (L,)
        Units that each domain can hold uncut, and sets that it can hold.
    each, count : int
        Units of a set, and sets in all.
    """
    home = np.repeat(np.arange(len(held)), held)
    turn = np.arange(len(home)) - np.repeat(np.cumsum(held) - held, held)
    cut = np.clip((turn + 1) * each - whole[home], 0, each)
    # Domains that hold the most come first: fewer of them are then in use.
    taken = np.lexsort((home, -held[home], cut))[:count]
    return np.bincount(home[taken], minlength=len(held))
