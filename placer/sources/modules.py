"""The modules that read the formats.

Type checkers see them all; at run time each loads when it is first named.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placer.sources import accelerate as accelerate
    from placer.sources import axolotl as axolotl
    from placer.sources import deepspeed as deepspeed
    from placer.sources import hf as hf
    from placer.sources import maxtext as maxtext
    from placer.sources import megatron as megatron
    from placer.sources import mlperf as mlperf
    from placer.sources import nanotron as nanotron
    from placer.sources import nemo as nemo
    from placer.sources import nemo_rl as nemo_rl
    from placer.sources import neox as neox
    from placer.sources import swift as swift
    from placer.sources import torchtitan as torchtitan
    from placer.sources import verl as verl
else:

    def __getattr__(name: str) -> object:
        return import_module(f"placer.sources.{name}")
