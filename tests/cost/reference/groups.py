"""Coordinates of ranks and the groups they form, by counting."""

from functools import cache


@cache
def coordinates(axes):
    """Coordinates of every rank on ``tp cp pp dp`` and on ``etp ep edp``.

    Ranks count through the axes with the first of the order fastest; experts count once
    more, with axes of their own and without ``cp`` (Megatron-LM, ``RankGenerator``).
    """
    dense = {"tp": axes.tp, "cp": axes.cp, "pp": axes.pp, "dp": axes.dp}
    experts = axes.tp * axes.cp * axes.dp // (axes.ep * axes.etp)
    expert = {"tp": axes.etp, "ep": axes.ep, "pp": axes.pp, "dp": experts}
    found = []
    for rank in range(axes.tp * axes.cp * axes.pp * axes.dp):
        at = _digits(rank, axes.order, dense)
        if axes.ep == 1 and axes.etp == axes.tp:
            at |= {"etp": at["tp"], "ep": 0, "edp": at["dp"] * axes.cp + at["cp"]}
        else:
            own = _digits(rank, axes.order, expert)
            at |= {"etp": own["tp"], "ep": own["ep"], "edp": own["dp"]}
        found.append(at)
    return found


@cache
def groups(axes, axis):
    """Ranks of every group of an axis, each ascending.

    ``dp_cp`` is the dense gradient group: all that hold the same dense parameters.
    """
    if axis == "dp_cp":
        fixed = ["tp", "pp"]
    else:
        dense = ["tp", "cp", "pp", "dp"]
        every = dense if axis in dense else ["etp", "ep", "edp", "pp"]
        fixed = [name for name in every if name != axis]
    found = {}
    for rank, at in enumerate(coordinates(axes)):
        found.setdefault(tuple(at[name] for name in fixed), []).append(rank)
    return list(found.values())


def _digits(rank, order, sizes):
    digits = {}
    for axis in order:
        rank, digits[axis] = divmod(rank, sizes.get(axis, 1))
    return digits
