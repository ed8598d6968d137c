"""Models of which some layers are no transformer layers, which no job can say.

Source: NVIDIA/Megatron-LM d98e8a64, ``megatron/core/``:
``ssm/mamba_hybrid_layer_allocation.py`` and
``models/gpt/experimental_attention_variant_module_specs.py``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placer.base.errors import Problem
from placer.formats.jobs.findings import Findings, Place

if TYPE_CHECKING:
    from placer.formats.jobs.megatron.arguments import Arguments

_SIGNS = {
    "M": "Mamba",
    "G": "gated delta net",
    "-": "MLP",
    "*": "attention",
    "E": "experts",
}
_PROGRAM = re.compile(r"(?:^|/)[\w-]*(?:mamba|hybrid)[\w-]*\.py$")
_RATIOS = {"attention": "hybrid_attention_ratio", "MLP": "hybrid_mlp_ratio"}
_VARIANTS = ("experimental_attention_variant", "linear_attention_type")


def refuse_mixed(found: Findings, arguments: Arguments) -> None:
    """Refuse a model of mixed layers, with how many it has of each."""
    layers = found.integer("model.layers")
    for name in ("hybrid_layer_pattern", "hybrid_override_pattern"):
        if pattern := arguments.text(name):
            counts = {words: pattern.count(sign) for sign, words in _SIGNS.items()}
            _refuse(found, arguments.place(name), counts)
            return
    for name in _VARIANTS:
        kind = arguments.text(name)
        if "delta" in kind or "mamba" in kind:
            linear = _linear(arguments, layers)
            words = kind.replace("_", " ")
            counts = {"attention": layers - linear, words: linear}
            _refuse(found, arguments.place(name), counts)
            return
    _refuse_ratios(found, arguments, layers)


def _refuse_ratios(found: Findings, arguments: Arguments, layers: int) -> None:
    """Mamba layers, of which shares are attention and MLP instead."""
    spec = arguments.texts("spec")
    hybrid = next(
        (
            name
            for name in (*_RATIOS.values(), "is_hybrid_model")
            if arguments.flag(name)
        ),
        "spec" if any("mamba" in word for word in spec) else "",
    )
    if not (hybrid or _PROGRAM.search(arguments.program)):
        return
    counts = {
        kind: round(layers * _ratio(arguments, name)) for kind, name in _RATIOS.items()
    }
    counts["Mamba"] = layers - sum(counts.values())
    place = arguments.place(hybrid) or arguments.place("num_layers")
    _refuse(found, place, counts)


def _ratio(arguments: Arguments, name: str) -> float:
    text = arguments.text(name)
    return float(text) if re.fullmatch(r"0?\.[0-9]{1,9}|[01](?:\.0*)?", text) else 0.0


def _linear(arguments: Arguments, layers: int) -> int:
    """Layers without attention proper: all but every n-th, or the ones of a list."""
    given = arguments.texts("linear_attention_freq")
    if len(given) == 1 and given[0].isdecimal() and int(given[0][:6]):
        return layers - layers // int(given[0][:6])
    return layers if not given else given.count("1")


def _refuse(found: Findings, place: Place | None, counts: dict[str, int]) -> None:
    told = ", ".join(f"{count} {words}" for words, count in counts.items() if count)
    message = f"a model of mixed layers ({told}) is not read"
    found.problems.append(Problem(message, *(place or Place(found.source))))
