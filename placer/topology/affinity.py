"""What the GPUs of a node are near to: NUMA nodes and NICs.

It changes no placement. Lists are in the order in which a launcher counts the GPUs of
a node that misses none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from placer.base.hostlist import compress

if TYPE_CHECKING:
    from placer.documents import Section, Value

MAX_NUMA = 1023

Item = TypeVar("Item")


@dataclass(frozen=True)
class Affinity:
    """NUMA node and nearest NICs of every GPU of a node.

    Attributes
    ----------
    numa : tuple of int
        Number of each GPU's NUMA node; empty where it is not known.
    nics : tuple of tuple of str
        The NICs nearest to each GPU; empty where they are not known.
    """

    numa: tuple[int, ...] = ()
    nics: tuple[tuple[str, ...], ...] = ()

    def of_node(self, gpus: int) -> Affinity:
        """The lists that describe a node of so many GPUs."""
        return Affinity(
            self.numa if len(self.numa) == gpus else (),
            self.nics if len(self.nics) == gpus else (),
        )

    def to_document(self) -> dict[str, Any]:
        """The value of ``affinity`` in the topology format; empty for nothing known."""
        lists = {"numa": [*self.numa], "nics": [[*own] for own in self.nics]}
        return {key: known for key, known in lists.items() if known}

    def words(self) -> Iterator[str]:
        """Lines for people: ``NUMA 0: GPU[0-3]; NUMA 1: GPU[4-7]``."""
        for near in (
            [f"NUMA {number}" for number in self.numa],
            [f"NIC {' '.join(own)}" if own else "no NIC" for own in self.nics],
        ):
            if near:
                yield "; ".join(
                    f"{what}: {gpu_words([g for g, n in enumerate(near) if n == what])}"
                    for what in dict.fromkeys(near)
                )


def gpu_words(gpus: Sequence[int]) -> str:
    """GPUs of a node for people: ``GPU[0,2-3]``."""
    return compress(f"GPU{gpu}" for gpu in gpus)


def read_affinity(root: Section, gpus: int) -> Affinity:
    """The key ``affinity`` of a topology file; ``gpus`` are those of a node."""
    section = root.section("affinity")
    numa, nics = section.get("numa"), section.get("nics")
    return Affinity(
        tuple(_of_each_gpu(numa, numa.integers(maximum=MAX_NUMA), gpus))
        if numa
        else (),
        tuple(_of_each_gpu(nics, [tuple(i.texts()) for i in nics.items()], gpus))
        if nics
        else (),
    )


def _of_each_gpu(value: Value, items: list[Item], gpus: int) -> list[Item]:
    """The items, when there is one a GPU."""
    if len(items) == gpus:
        return items
    value.problem(f"{len(items)} entries for the {gpus} GPUs of a node")
    return []
