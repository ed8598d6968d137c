"""How layers are cut over tensor, context and expert ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LOSSES = ("parallel", "gathered")
# Not written, and no part of a digest, where they have their defaults.
NEWER_TENSOR_KEYS = {"loss": "parallel"}
# 16 of 132 (Megatron-LM's table of communicators, the most; DeepEP 0297fc80: 20 to 24;
# HybridEP: 16, or 32 in Megatron-Bridge 067f987d, ``perf_recipes/_common.py``);
# Calculon caa4b11f: 0.15 for NVLink, 0.02 for NICs.
SM_SHARE = 0.12
# As `NEWER_TENSOR_KEYS`.
NEWER_EXPERT_KEYS = {"sm_share": SM_SHARE}


def said(section: Mapping[str, Any], newer: Mapping[str, Any]) -> dict[str, Any]:
    """The section without newer keys at their defaults: digests outlive them."""
    return {k: v for k, v in section.items() if k not in newer or v != newer[k]}


@dataclass(frozen=True)
class TensorParallel:
    """How layers are cut over ``tp``.

    Attributes
    ----------
    sequence : bool
        Sequence parallelism: norms work on a slice of the sequence, and each all-reduce
        becomes a reduce-scatter and an all-gather.
    loss : str
        ``parallel``: each rank has its part of the logits. ``gathered``: each has all.
    """

    sequence: bool = True
    loss: str = "parallel"


@dataclass(frozen=True)
class ContextParallel:
    """How attention sees the whole sequence over ``cp``.

    Attributes
    ----------
    communication : str
        ``p2p`` (keys and values go round a ring beside attention), ``all_gather`` (they
        are gathered before it) or ``a2a`` (heads are exchanged for tokens and back).
    """

    communication: str = "p2p"


@dataclass(frozen=True)
class ExpertParallel:
    """How tokens reach their experts over ``ep``.

    Attributes
    ----------
    imbalance : float
        Tokens of the busiest expert rank, in those of the mean; at least 1.
    dispatch : str
        ``flat`` sends every copy of a token by itself, ``deduplicated`` one to each
        scale-up domain, and there to each GPU.
    sm_share : float
        Of a GPU's multiprocessors, what hidden exchanges take from the work beside
        them.
    """

    imbalance: float = 1.0
    dispatch: str = "flat"
    sm_share: float = SM_SHARE


@dataclass(frozen=True)
class Collectives:
    """Algorithms of the collectives.

    Attributes
    ----------
    all_reduce : str
        ``auto`` (the fastest that NCCL would take), ``ring``, ``tree`` or ``nvls``.
    """

    all_reduce: str = "auto"
