"""What the GPUs of a node are near to: NUMA nodes and NICs.

It changes no placement. Lists are in the order in which a launcher counts the GPUs of
a node that misses none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placer.base.hostlist import compress
from placer.documents import Section
from placer.documents.keys import TEXT, integer, key, list_of
from placer.documents.records import read

MAX_NUMA = 1023


@dataclass(frozen=True)
class Affinity:
    """NUMA node and nearest NICs of every GPU of a node; empty where not known."""

    all_unsaid = True

    numa: tuple[int, ...] = key(
        list_of(integer(0, MAX_NUMA)),
        "number of the GPU's NUMA node",
        (),
        absent="not known",
    )
    nics: tuple[tuple[str, ...], ...] = key(
        list_of(list_of(TEXT)),
        "the NICs nearest to the GPU, one or several",
        (),
        absent="not known",
    )

    def of_node(self, gpus: int) -> Affinity:
        """The lists that describe a node of so many GPUs."""
        return Affinity(
            self.numa if len(self.numa) == gpus else (),
            self.nics if len(self.nics) == gpus else (),
        )

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
    found = read(section, Affinity)
    for name, listed in (("numa", found.numa), ("nics", found.nics)):
        value = section.get(name)
        if value is not None and value.kind == "list" and len(listed) != gpus:
            value.problem(f"{len(listed)} entries for the {gpus} GPUs of a node")
    return found
