"""How good a granted allocation is, in a sentence or two."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from placer.base.units import plural
from placer.report.words import amount, share_text

# Names in a row, and groups of domains, at the most.
_NAMED = 4
_GROUPS = 2


def grade_text(grade: Mapping[str, Any]) -> str:
    """``costs 8.4 % more than 16 full racks; r07 and r12 hold 3 nodes each``.

    Parameters
    ----------
    grade : mapping
        As `placer.allocate` gives it: values of the granted nodes, of the best free
        ones and of the best at all, with the nodes of each in every domain.
    """
    objective, own = grade["objective"], grade["value"]
    free, best = grade["best_free"], grade["best"]
    parts = []
    if _more(own, free["value"]) > 1e-9:
        parts.append(_costs(objective, own, free, grade["tier"]))
        parts += _odd(grade)
    else:
        parts.append(
            f"no free nodes are better: {amount(objective, own)}"
            + (" a step" if objective == "time" else "")
        )
    if _more(free["value"], best["value"]) > 1e-9:
        share = share_text(1 - best["value"] / free["value"])
        shape = _shape(best["domains"], grade["tier"])
        parts.append(f"were all nodes free, {shape} would save {share} more")
    if grade["stranded_nodes"] > 0.05:
        parts.append(f"strands {grade['stranded_nodes']:.1f} nodes more")
    elif grade["stranded_nodes"] < -0.05:
        parts.append(f"strands {-grade['stranded_nodes']:.1f} nodes less")
    return "; ".join(parts)


def _more(own: float, other: float) -> float:
    return own / other - 1 if other else 0.0


def _costs(objective: str, own: float, other: Mapping[str, Any], tier: str) -> str:
    share = share_text(_more(own, other["value"]))
    mine, theirs = amount(objective, own), amount(objective, other["value"])
    text = f"costs {share} more than {_shape(other['domains'], tier)}"
    return text + (f" ({mine} instead of {theirs})" if mine != theirs else "")


def _shape(domains: Mapping[str, Sequence[int]], tier: str) -> str:
    """``16 full racks``, or how many nodes each domain gives."""
    from placer.report.allocation_table import counts_text

    if not domains:
        return "the best nodes"
    count = len(domains)
    if all(held == size for held, size in domains.values()):
        return f"{count} full {plural(tier, count)}"
    return counts_text([held for held, _ in domains.values()], tier)


def _odd(grade: Mapping[str, Any]) -> list[str]:
    """The domains that hold another number of nodes than those of the best."""
    usual = Counter(held for held, _ in grade["best_free"]["domains"].values())
    by_count: dict[int, list[str]] = defaultdict(list)
    for name, (held, _) in grade["domains"].items():
        if not usual[held]:
            by_count[held].append(name)
    found = []
    for held, names in sorted(by_count.items())[:_GROUPS]:
        nodes = f"{held} {plural('node', held)}"
        each = " each" if len(names) > 1 else ""
        verb = "hold" if len(names) > 1 else "holds"
        found.append(f"{_list(names)} {verb} {nodes}{each}")
    return found


def _list(names: Sequence[str]) -> str:
    if len(names) > _NAMED:
        shown = ", ".join(names[: _NAMED - 1])
        return f"{shown} and {len(names) - _NAMED + 1} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
