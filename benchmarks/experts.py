"""How good EPLB is on its own example: ``python -m benchmarks.experts``.

A balancer gives experts copies and copies places, so that the fullest GPU has little.
With two slots a GPU all numbers of copies can be tried: the best pairs of so many
copies are the largest with the smallest, the second with the last but one, and so on
(exchanging partners of any two pairs leaves the fuller of them no less full).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

# Loads of 12 experts in two layers, and expert of each slot as EPLB places it: the
# example of deepseek-ai/EPLB (commit d52c72d5), README.md.
LOADS = (
    (90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86),
    (20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27),
)
PLACED = (
    (5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1),
    (7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1),
)
SLOTS, GPUS, NODES, GROUPS = 16, 8, 2, 4


def fullest(loads: Sequence[float], expert_of_slot: Sequence[int]) -> float:
    """Load of the fullest GPU; those of an expert's copies are equal."""
    each = [loads[e] / expert_of_slot.count(e) for e in expert_of_slot]
    per_gpu = len(each) // GPUS
    return max(sum(each[g : g + per_gpu]) for g in range(0, len(each), per_gpu))


def least(loads: Sequence[float], slots: int) -> float:
    """The least that the fullest of ``slots / 2`` GPUs can have, any copies allowed."""
    return min(_paired(loads, counts) for counts in _copies(len(loads), slots))


def least_by_groups(loads: Sequence[float]) -> float:
    """The same where each node has whole groups of experts, as many as the others."""
    size = len(loads) // GROUPS
    groups = [loads[g * size : (g + 1) * size] for g in range(GROUPS)]
    found = []
    for here in combinations(range(GROUPS), GROUPS // NODES):
        sides = (here, [g for g in range(GROUPS) if g not in here])
        nodes = [[load for g in side for load in groups[g]] for side in sides]
        found.append(max(least(node, SLOTS // NODES) for node in nodes))
    return min(found)


def _copies(experts: int, slots: int) -> Iterator[tuple[int, ...]]:
    """All numbers of copies, at least one each, that fill the slots."""
    for cuts in combinations(range(1, slots), experts - 1):
        ends = (0, *cuts, slots)
        yield tuple(b - a for a, b in pairwise(ends))


def _paired(loads: Sequence[float], counts: Sequence[int]) -> float:
    pairs = zip(loads, counts, strict=True)
    copies = sorted(load / n for load, n in pairs for _ in range(n))
    return max(a + b for a, b in zip(copies, reversed(copies), strict=True))


def main() -> None:
    """A line for each layer."""
    print(f"{'layer':>5}{'mean':>8}{'EPLB':>8}{'by groups':>11}{'free':>8}")
    for layer, (loads, placed) in enumerate(zip(LOADS, PLACED, strict=True), start=1):
        print(
            f"{layer:>5}{sum(loads) / GPUS:>8.1f}{fullest(loads, placed):>8.1f}"
            f"{least_by_groups(loads):>11.1f}{least(loads, SLOTS):>8.1f}"
        )


if __name__ == "__main__":
    main()
