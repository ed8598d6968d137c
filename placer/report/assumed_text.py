"""What was assumed, with the options that say otherwise and what these would change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from placer.assumed import (
    FIXED,
    GPUS_PER_NODE,
    HARDWARE,
    LINKS,
    MEMORY,
    NVLINK,
    OVERSUBSCRIPTION,
    RATE,
    Assumption,
    of_document,
)
from placer.base.units import format_bytes
from placer.report.columns import WIDTH, told, wrapped
from placer.report.words import share_text

_WORDS = {
    HARDWARE: "{value} hosts",
    LINKS: "links of {value} hosts",
    NVLINK: "no NVLink between hosts",
    GPUS_PER_NODE: "{value} GPUs a node",
    OVERSUBSCRIPTION: "uplinks not oversubscribed",
    MEMORY: "{value} of memory a GPU, {why}",
    RATE: "{value} TFLOP/s a GPU, {why}",
    FIXED: "{value} s of a step whatever its micro-batches",
}
# How a value that was tried instead is called.
_AT = {OVERSUBSCRIPTION: "{value}:1", RATE: "{value} TFLOP/s"}
_USUAL = "{key} {value}"
# Keys of the job that are told; where there are more, how many.
_MOST = 3


def assumed_lines(
    assumed: Sequence[Mapping[str, Any]],
    what_if: Sequence[Mapping[str, Any]] = (),
    width: int = WIDTH,
    who: str = "this plan",
) -> Iterator[str]:
    """The texts in lines of so many columns at most."""
    return told(assumed_texts(assumed, what_if, who), width)


def assumed_texts(
    assumed: Sequence[Mapping[str, Any]],
    what_if: Sequence[Mapping[str, Any]] = (),
    who: str = "this plan",
) -> Iterator[str]:
    """One text for all that was assumed, and one for each that the verdict rests on.

    ``assumed`` and ``what_if``: as a plan has them. ``who``: what would save so much.
    """
    tried: dict[str, list[Mapping[str, Any]]] = {}
    for entry in what_if:
        tried.setdefault(entry["key"], []).append(entry)
    alone = [each for each in of_document(assumed) if each.key in tried]
    rest = [each for each in of_document(assumed) if each.key not in tried]
    if rest:
        yield f"assumed: {'; '.join(_told(rest))}"
    for each in alone:
        text = f"{_words(each)}; {_otherwise(each.key, tried[each.key], who)}"
        yield f"assumed: {text} ({each.option})"


def fixed_warning(share: float) -> Iterator[str]:
    """That much of a step is assumed, where it is."""
    if share:
        text = (
            f"warning: that is {share:z.0%} of the step; calibrate what is fixed of it"
        )
        yield from wrapped(text, "  ")


def _told(assumed: Iterable[Assumption]) -> Iterator[str]:
    """Words and option of each; of keys of the job the first few."""
    others = [each for each in assumed if each.key not in _WORDS]
    for each in assumed:
        if each.key in _WORDS:
            yield f"{_words(each)} ({each.option})"
    for each in others[:_MOST]:
        yield f"{_words(each)} ({each.option})"
    if len(others) > _MOST:
        yield f"{len(others) - _MOST} more keys of the job (-v)"


def _words(each: Assumption) -> str:
    value = each.value if each.key not in _WORDS else _shown(each.value)
    if each.key == MEMORY:
        value = format_bytes(float(each.value))
    words = _WORDS.get(each.key, _USUAL)
    return words.format(key=each.key, value=value, why=each.why)


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,g}"


def _otherwise(key: str, tried: Sequence[Mapping[str, Any]], who: str) -> str:
    """What would be saved with other values."""
    words = _AT.get(key, _USUAL)
    at = [
        (words.format(key=key, value=_shown(one["value"])), one["saved_share"])
        for one in tried
    ]
    if len({saved for _, saved in at}) == 1 and len(at) > 1:
        return f"at {' and '.join(a for a, _ in at)} {who} {_saves(at[0][1])}"
    (first, saved), *others = at
    text = f"at {first} {who} {_saves(saved)}"
    for name, share in others:
        alike = (share > 0) == (saved > 0) and share and saved
        said = _saves(share).split(maxsplit=1)[1] if alike else f"it {_saves(share)}"
        text += f", at {name} {said}"
    return text


def _saves(share: float) -> str:
    """``saves 3.8 %``."""
    if share == 0:
        return "saves nothing"
    return f"{'saves' if share > 0 else 'costs'} {share_text(abs(share))}"
