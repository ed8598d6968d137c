"""The rows of a search over degrees as text for people, as CSV and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from placer.base.csv_rows import csv_text
from placer.base.units import format_bytes, format_seconds
from placer.report import tune_words as say
from placer.report.assumed_text import assumed_lines, fixed_warning
from placer.report.columns import columns, narrowed, paragraphs, wrapped
from placer.report.notebook import html_table

Row = Mapping[str, Any]

_HEAD = ("batch", "recompute", "sharding", "step", "behind", "memory")
# What may be said once for all rows, instead of in each of them.
_SAID_ONCE = ("too well", "recompute", "sharding", "batch")
_NOT_IN_CSV = (
    "parallelism",
    "parts_s",
    "flags",
    "methods",
    "alike_in",
    "rated",
    "tested",
)
_EXPERT_SIZE = "--expert-tensor-parallel-size"
Flags = dict[str, str]


def tune_text(
    found: Mapping[str, Any],
    *,
    explain: bool = False,
    row: int = 0,
    place: Iterable[str] = (),
) -> str:
    """The verdict, a table with a line a row, what was left out and what is proved.

    ``found``: as `placer.tune.tuning.Tuning.to_dict` gives it. ``explain``: also say
    why the first row is better than another and than the job's own. ``row``: of which
    the flags are shown. ``place``: lines that say how the job with them is placed.
    """
    rows = found["rows"]
    return paragraphs(
        (
            [
                *wrapped(f"{say.verdict(found)} {say.of_own_kind(rows)}".rstrip()),
                *assumed_lines(found.get("assumed", ())),
                *fixed_warning(found["fixed_share"]),
            ],
            (
                *narrowed(_table(rows), _SAID_ONCE),
                *_below(rows, found["own"]),
                *wrapped(say.tight(rows, found["memory_limit_bytes"]), "  "),
            ),
            wrapped(say.short(found)),
            wrapped(say.ties(rows)),
            wrapped(say.how_sure(found)),
            (*_by_gpus(found["fronts"]["gpus"]), *wrapped(say.fewer(found))),
            _explained(rows, found["own"]) if explain else (),
            (*wrapped(_left_out(found)), *wrapped(found["proof"] + ".")),
            next_lines(found, row, place),
        )
    )


def tune_html(found: Mapping[str, Any]) -> str:
    """The verdict and the table, for a notebook."""
    return html_table(_table(found["rows"]), say.verdict(found), found["proof"])


def tune_csv(rows: Sequence[Row]) -> str:
    """The rows as CSV: a header, then a line a row; numbers as in JSON."""
    flat = [
        {
            **row["parallelism"],
            **{k: v for k, v in row.items() if k not in _NOT_IN_CSV},
            "flags": " ".join(row["flags"]),
        }
        for row in rows
    ]
    return csv_text(flat)


def _table(rows: Sequence[Row]) -> list[list[str]]:
    """A head, and a line a row with the axes that tell rows apart."""
    axes = [axis for axis in say.AXES if any(say.tells(row, axis) for row in rows)]
    gpus = ["GPUs"] if len({row["gpus"] for row in rows}) > 1 else []
    well = ["too well"] if any(map(say.rated_too_well, rows)) else []
    lines = [["", *gpus, *axes, *_HEAD, *well]]
    for number, row in enumerate(rows, 1):
        count = [f"{row['gpus']:,}"] if gpus else []
        sizes = [str(row["parallelism"][axis]) for axis in axes]
        more = [say.rated_too_well(row)] if well else []
        name = f"{number}{'*' * bool(row.get('is_own_kind'))}"
        lines.append([name, *count, *sizes, *_cells(row, rows[0]), *more])
    return lines


def _below(rows: Sequence[Row], own: Row | None) -> Iterator[str]:
    """What the marks and columns of the table mean."""
    if own is not None and any(row.get("is_own_kind") for row in rows):
        kind = " and ".join(own["methods"])
        yield from wrapped(f"*: the best of the job's own kind, with {kind}")
    for number, row in enumerate(rows, 1):
        if row.get("alike"):
            yield from wrapped(say.alike_words(number, row))
    yield from wrapped(say.too_well(rows))


def _cells(row: Row, best: Row) -> list[str]:
    step = row["step_time_s"]
    behind = step / best["step_time_s"] - 1
    return [
        f"{row['micro_batch']} x {row['micro_batches']}",
        row["recompute"],
        say.sharding(row),
        format_seconds(step),
        f"+{behind:z.2%}" if behind else "",
        format_bytes(row["memory_bytes"]),
    ]


def _by_gpus(front: Sequence[Row]) -> Iterator[str]:
    """The best with fewer GPUs, and how well more of them are used."""
    if len(front) < 2:
        return
    table = [["best with", "step", "tokens/s/GPU", "degrees"]]
    for row in front:
        step, tokens = format_seconds(row["step_time_s"]), row["tokens_per_s_per_gpu"]
        table.append(
            [f"{row['gpus']:,} GPUs", step, f"{tokens:,.0f}", say.degrees(row)]
        )
    yield from columns(table)


def _explained(rows: Sequence[Row], own: Row | None) -> Iterator[str]:
    """Why the first row is better than the next of other degrees and the job's own."""
    best = rows[0]
    number = next(
        (i for i, row in enumerate(rows) if row["parallelism"] != best["parallelism"]),
        min(1, len(rows) - 1),
    )
    others = {f"Row {number + 1}": rows[number]} if number else {}
    if own is not None and "error" not in own and not say.is_same(own, best):
        others["The job's own choice"] = own
    if not others:
        return
    yield from columns(_parts({"row 1": best} | others))
    for name, row in others.items():
        yield from ("", *wrapped(say.why_not(best, row, name)))


def _parts(rows: Mapping[str, Row]) -> list[list[str]]:
    """A head, and a line a part of the step; parts that are nothing are left out."""
    names = dict.fromkeys(part for row in rows.values() for part in row["parts_s"])
    lines = [["", *(name[0].lower() + name[1:] for name in rows)]]
    for part in names:
        times = [row["parts_s"].get(part, 0.0) for row in rows.values()]
        if max(times) > 1e-9:
            lines.append([part, *map(format_seconds, times)])
    for name, key, form in (
        ("step", "step_time_s", format_seconds),
        ("memory of a GPU", "memory_bytes", format_bytes),
        ("read at a restart", "restart_bytes", format_bytes),
    ):
        lines.append([name, *(form(row[key]) for row in rows.values())])
    return lines


def _left_out(found: Mapping[str, Any]) -> str:
    pruned = found["pruned"]
    reasons = sorted(found["refused"].items(), key=lambda item: -item[1])[:2]
    why = "; ".join(f"{reason} {count:,}" for reason, count in reasons)
    refused = f" ({why})" if why else ""
    others = f"{pruned['bound']:,} have a lower bound above the best"
    if pruned["undecided"]:
        others = f"{pruned['undecided']:,} were not decided in time"
    first = "" if found["lower_bound_s"] else "the first "
    return (
        f"Of {first}{found['considered']:,} choices, {pruned['rules']:,} break a rule "
        f"of {found['framework']}{refused}, {pruned['memory']:,} do not fit into "
        f"memory, {others}."
    )


def next_lines(
    found: Mapping[str, Any], index: int, place: Iterable[str] = ()
) -> Iterator[str]:
    """The flags of a row that differ from the job's own, or all; then a command.

    ``found``: as `placer.tune.tuning.Tuning.to_dict` gives it. ``index``: of the
    row. ``place``: lines that say how the job with them is placed.
    """
    row, own = found["rows"][index], found["own"]
    framework, words = found["framework"], row["flags"]
    has_own = say.has_degrees(own)
    if has_own and say.is_same(own, row):
        yield f"Row {index + 1} has the flags of the job: nothing to change."
    elif not words:
        yield from wrapped(
            f"No flags of {framework} are known for row {index + 1}; "
            "--job-output FILE writes the job with its degrees."
        )
    elif has_own and own["flags"]:
        yield f"To change for row {index + 1}, flags of {framework}:"
        mine = _flags(own["flags"])
        if _asked_by_megatron(words, row["parallelism"]):
            mine.pop(_EXPERT_SIZE, None)  # a job without experts had no such flag
        new = _flags(words)
        yield from _bound({k: v for k, v in new.items() if mine.get(k) != v})
        if gone := {name: "" for name in mine if name not in new}:
            yield "and to leave out:"
            yield from _bound(gone)
    else:
        yield f"Flags of row {index + 1} for {framework}:"
        yield from _bound(_flags(words))
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


def _bound(flags: Flags) -> Iterator[str]:
    """Flags in lines; each stays with its values."""
    words = [
        f"{name} {value}".strip().replace(" ", "\N{NO-BREAK SPACE}")
        for name, value in flags.items()
    ]
    yield from (f"  {line}" for line in wrapped(" ".join(words), width=78))


def _asked_by_megatron(words: Sequence[str], sizes: Mapping[str, int]) -> bool:
    """Whether the experts' tensor parallel size is none that the row has."""
    if _EXPERT_SIZE not in words:
        return False
    return words[words.index(_EXPERT_SIZE) + 1] != str(sizes["etp"])
