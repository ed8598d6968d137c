"""What one GPU of a machine holds and can do: the ``gpu`` mapping of a topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from placer.base.units import parse_bandwidth, parse_bytes, parse_power

if TYPE_CHECKING:
    from placer.documents import Section


@dataclass(frozen=True)
class Gpu:
    """One GPU; what is not known is empty.

    Attributes
    ----------
    name : str
    memory : float, bytes
        What a process can use at most; 0 when not known.
    peak : mapping of str to float, FLOP/s
        Dense peak by precision, such as ``bf16``.
    power : float, W
        What one GPU in use draws, its share of the node with it; 0 when not known.
    memory_bandwidth : float, B/s
        Of its memory, by the data sheet; 0 when not known.
    """

    name: str = ""
    memory: float = 0.0
    peak: Mapping[str, float] = field(default_factory=dict)
    power: float = 0.0
    memory_bandwidth: float = 0.0

    def to_document(self) -> dict[str, Any]:
        """What is known, as a ``gpu`` entry of the topology format; may be empty."""
        known = {
            "name": self.name,
            "memory": self.memory,
            "memory_bandwidth": self.memory_bandwidth,
            "peak": dict(self.peak),
            "power": self.power,
        }
        entry = {key: value for key, value in known.items() if value}
        return {"gpu": entry} if entry else {}


def decode_gpu(section: Section) -> Gpu:
    """The mapping, checked; problems go to the section's document."""
    peak = section.section("peak")
    return Gpu(
        name=section.text("name", ""),
        memory=section.quantity("memory", parse_bytes, 0.0),
        peak={key: value.number() for key, value in peak.entries()},
        power=section.quantity("power", parse_power, 0.0),
        memory_bandwidth=section.quantity("memory_bandwidth", parse_bandwidth, 0.0),
    )
