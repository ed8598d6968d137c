"""What one GPU of a machine holds and can do: the ``gpu`` mapping of a topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placer.documents.keys import BANDWIDTH, POWER, SIZE, TEXT, key, map_of, number
from placer.documents.records import entries


@dataclass(frozen=True)
class Gpu:
    """One GPU; what is not known is empty."""

    name: str = key(TEXT, "for example `H100`", "", unsaid=True)
    memory: float = key(
        SIZE,
        "what a process can use, as `nvidia-smi` shows it: `80GB`, `81559MiB`. A "
        "job that needs more is said not to fit",
        0.0,
        absent="unknown",
        unsaid=True,
    )
    memory_bandwidth: float = key(
        BANDWIDTH,
        "of its memory, by the data sheet: `3.35TB/s`. The cost of mixtures rests "
        "on it",
        0.0,
        absent="unknown",
        unsaid=True,
    )
    peak: Mapping[str, float] = key(
        map_of(number()),
        "dense peak, such as `{bf16: 9.89e14, fp8: 1.979e15}`",
        dict,
        unsaid=True,
    )
    power: float = key(
        POWER,
        "what one GPU in use draws, its share of the host with it",
        0.0,
        absent="unknown",
        unsaid=True,
    )

    def to_document(self) -> dict[str, Any]:
        """What is known, as a ``gpu`` entry of the topology format; may be empty."""
        entry = entries(self)
        return {"gpu": entry} if entry else {}
