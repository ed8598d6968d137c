"""The modules that read the formats.

Type checkers see them all; at run time each loads when it is first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.sources import hf as hf
    from placer.sources import megatron as megatron
    from placer.sources import mlperf as mlperf
    from placer.sources import swift as swift
else:

    def __getattr__(name: str) -> object:
        return import_module(f"placer.sources.{name}")
