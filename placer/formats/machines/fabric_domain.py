"""The NVLink domain of a GPU, from what its driver calls the fabric.

A domain is a cluster UUID and a clique. A UUID of zeros is what hosts with NVLink
inside only report: no domain (NVIDIA/nccl, ``src/graph/topo.cc`` and ``src/mnnvl.cc``,
decides the same).
"""

from __future__ import annotations

import re

UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"


def fabric_domain(state: str, uuid: str, clique: str) -> str:
    """The domain, ``UUID.CLIQUE``; empty when the GPU is in none."""
    if state not in ("", "Completed") or not uuid.strip("0-"):
        return ""
    if not (re.fullmatch(UUID, uuid) and clique.isdecimal()):
        return ""
    return f"{uuid.lower()}.{clique}"
