"""The rows of a search over degrees as text for people, as CSV and as HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from placer.base.units import format_bytes, format_seconds
from placer.report.assumed_text import assumed_lines, fixed_warning
from placer.report.columns import columns, narrowed, paragraphs, wrapped
from placer.report.html_table import html_table
from placer.report.tune_next import next_lines
from placer.report.tune_words import (
    AXES,
    alike_words,
    degrees,
    fewer,
    how_sure,
    is_same,
    of_own_kind,
    rated_too_well,
    sharding,
    short,
    tells,
    ties,
    too_well,
    verdict,
    why_not,
)

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


def tune_text(
    found: Mapping[str, Any],
    *,
    explain: bool = False,
    row: int = 0,
    place: Iterable[str] = (),
) -> str:
    """The verdict, a table with a line a row, what was left out and what is proved.

    Parameters
    ----------
    found : mapping
        As `placer.degrees.tuning.Tuning.to_dict` gives it.
    explain : bool
        Also say why the first row is better than another and than the job's own.
    row : int
        Of which the flags are shown.
    place : iterable of str
        Lines that say how the job with them is placed.
    """
    rows = found["rows"]
    return paragraphs(
        (
            [
                *wrapped(f"{verdict(found)} {of_own_kind(rows)}".rstrip()),
                *assumed_lines(found.get("assumed", ())),
                *fixed_warning(found["fixed_share"]),
            ],
            (*narrowed(_table(rows), _SAID_ONCE), *_below(rows, found["own"])),
            wrapped(short(found)),
            wrapped(ties(rows)),
            wrapped(how_sure(found)),
            (*_by_gpus(found["fronts"]["gpus"]), *wrapped(fewer(found))),
            _explained(rows, found["own"]) if explain else (),
            (*wrapped(_left_out(found)), *wrapped(found["proof"] + ".")),
            next_lines(found, row, place),
        )
    )


def tune_html(found: Mapping[str, Any]) -> str:
    """The verdict and the table, for a notebook."""
    return html_table(_table(found["rows"]), verdict(found), found["proof"])


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
    text = io.StringIO()
    writer = csv.DictWriter(text, list(flat[0]), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _table(rows: Sequence[Row]) -> list[list[str]]:
    """A head, and a line a row with the axes that tell rows apart."""
    axes = [axis for axis in AXES if any(tells(row, axis) for row in rows)]
    gpus = ["GPUs"] if len({row["gpus"] for row in rows}) > 1 else []
    well = ["too well"] if any(map(rated_too_well, rows)) else []
    lines = [["", *gpus, *axes, *_HEAD, *well]]
    for number, row in enumerate(rows, 1):
        count = [f"{row['gpus']:,}"] if gpus else []
        sizes = [str(row["parallelism"][axis]) for axis in axes]
        more = [rated_too_well(row)] if well else []
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
            yield from wrapped(alike_words(number, row))
    yield from wrapped(too_well(rows))


def _cells(row: Row, best: Row) -> list[str]:
    step = row["step_time_s"]
    behind = step / best["step_time_s"] - 1
    return [
        f"{row['micro_batch']} x {row['micro_batches']}",
        row["recompute"],
        sharding(row),
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
        table.append([f"{row['gpus']:,} GPUs", step, f"{tokens:,.0f}", degrees(row)])
    yield from columns(table)


def _explained(rows: Sequence[Row], own: Row | None) -> Iterator[str]:
    """Why the first row is better than the next of other degrees and the job's own."""
    best = rows[0]
    number = next(
        (i for i, row in enumerate(rows) if row["parallelism"] != best["parallelism"]),
        min(1, len(rows) - 1),
    )
    others = {f"Row {number + 1}": rows[number]} if number else {}
    if own is not None and "error" not in own and not is_same(own, best):
        others["The job's own choice"] = own
    if not others:
        return
    yield from columns(_parts({"row 1": best} | others))
    for name, row in others.items():
        yield from ("", *wrapped(why_not(best, row, name)))


def _parts(rows: Mapping[str, Row]) -> list[list[str]]:
    """A head, and a line a part of the step; parts that are nothing are left out."""
    names = dict.fromkeys(part for row in rows.values() for part in row["parts_s"])
    lines = [["", *(name[0].lower() + name[1:] for name in rows)]]
    for part in names:
        times = [row["parts_s"].get(part, 0.0) for row in rows.values()]
        if max(times) > 1e-9:
            lines.append([part, *map(format_seconds, times)])
    lines.append(
        ["step", *(format_seconds(row["step_time_s"]) for row in rows.values())]
    )
    memory = [format_bytes(row["memory_bytes"]) for row in rows.values()]
    lines.append(["memory of a GPU", *memory])
    restart = [format_bytes(row["restart_bytes"]) for row in rows.values()]
    lines.append(["read at a restart", *restart])
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
