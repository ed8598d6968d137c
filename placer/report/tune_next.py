"""What to do with a row of `tune`: flags to change, and the command that places it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from placer.report.columns import wrapped
from placer.report.tune_words import has_degrees, is_same

_EXPERT_SIZE = "--expert-tensor-parallel-size"


def next_lines(
    found: Mapping[str, Any], index: int, place: Iterable[str] = ()
) -> Iterator[str]:
    """The flags of a row that differ from the job's own, or all; then a command.

    Parameters
    ----------
    found : mapping
        As `placer.degrees.tuning.Tuning.to_dict` gives it.
    index : int
        Of the row.
    place : iterable of str
        Lines that say how the job with them is placed.
    """
    row, own = found["rows"][index], found["own"]
    framework, words = found["framework"], row["flags"]
    has_own = has_degrees(own)
    if has_own and is_same(own, row):
        yield f"Row {index + 1} has the flags of the job: nothing to change."
    elif not words:
        yield from wrapped(
            f"No flags of {framework} are known for row {index + 1}; "
            "--job-output FILE writes the job with its degrees."
        )
    elif has_own and own["flags"]:
        yield f"To change for row {index + 1}, flags of {framework}:"
        changed, gone = _changes(_flags(own["flags"]), _flags(words))
        yield from _bound(changed)
        if gone:
            yield "and to leave out:"
            yield from _bound(gone)
    else:
        yield f"Flags of row {index + 1} for {framework}:"
        yield from _bound(_flags(words).items())
    if words and framework == "deepspeed":
        yield from wrapped(
            "They are those of Megatron-DeepSpeed. The file of --deepspeed_config says "
            "the stage of ZeRO and the batch again."
        )
    if _asked_by_megatron(words, row["parallelism"]):
        yield from wrapped(
            "The model has no experts. Megatron-LM refuses this order of ranks unless "
            f"{_EXPERT_SIZE} is tp x cp; nothing else uses that."
        )
    lines = list(place)
    if lines:
        yield from ("next", *lines)


Flags = dict[str, str]


def _flags(words: Sequence[str]) -> Flags:
    """Values of flags by their names; a word that is none stands by itself."""
    found: Flags = {}
    last = ""
    for word in words:
        if word.startswith("--") or not last:
            last = word if word.startswith("--") else ""
            found[word] = ""
        else:
            found[last] = f"{found[last]} {word}".strip()
    return found


def _changes(
    own: Flags, new: Flags
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Flags of ``new`` that differ, and names of ``own`` that it lacks."""
    changed = [item for item in new.items() if own.get(item[0]) != item[1]]
    return changed, [(name, "") for name in own if name not in new]


def _bound(flags: Any) -> Iterator[str]:
    """Flags in lines; each stays with its values."""
    words = [
        f"{name} {value}".strip().replace(" ", "\N{NO-BREAK SPACE}")
        for name, value in flags
    ]
    yield from (f"  {line}" for line in wrapped(" ".join(words), width=78))


def _asked_by_megatron(words: Sequence[str], sizes: Mapping[str, int]) -> bool:
    """Whether the experts' tensor parallel size is none that the row has."""
    if _EXPERT_SIZE not in words:
        return False
    return words[words.index(_EXPERT_SIZE) + 1] != str(sizes["etp"])
