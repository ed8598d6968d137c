"""Names and sentences for rows of a search over degrees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from placer.base.naming import named
from placer.base.units import format_bytes, format_seconds, listed
from placer.cost import DIFFERENCE
from placer.report.words import compared, share_text, within_noise

Row = Mapping[str, Any]

AXES = ("tp", "cp", "ep", "etp", "pp", "vp", "dp")

# What tells rows apart whose steps the model cannot: key, words, and its unit.
_TIE_BREAKERS = {
    "memory_bytes": ("leaves the most memory free", "{} needed"),
    "gpus": ("uses the fewest GPUs", "{}"),
    "scale_up_domains": ("touches the fewest scale-up domains", "{}"),
    "restart_bytes": ("has the least to read after a failure", "{} a rank"),
}

# Relative difference of step times that is no difference.
SAME = 1e-9

# Share of a GPU's memory above which a row has less free than `docs/memory.md` wants.
_FILLED = 0.9

# Words for what choices differ in.
_NAMES = {
    "micro_batch": "samples a micro-batch",
    "embedding": "embedding as layers",
    "loss": "loss as layers",
}

# How much of forward is computed again; modules lie between.
_REPEATED = {"none": 0, "full": 2}


def tells(row: Row, axis: str) -> bool:
    """Whether the size of an axis has to be said."""
    sizes = row["parallelism"]
    usual = sizes["tp"] if axis == "etp" and sizes["ep"] == 1 else 1
    return bool(sizes[axis] != usual)


def has_degrees(own: Row | None) -> bool:
    """Whether a job has degrees of its own.

    Replicas alone are what a job has whose sources name a model, and no degrees.
    """
    return own is not None and any(tells(own, axis) for axis in AXES if axis != "dp")


def degrees(row: Row) -> str:
    """The degrees of a row: ``tp 4, pp 8, dp 2``."""
    sizes = row["parallelism"]
    named = [f"{axis} {sizes[axis]}" for axis in AXES if tells(row, axis)]
    return ", ".join(named) or "one GPU alone"


def sharding(row: Row) -> str:
    """How a row keeps its states: ``hsdp 8``."""
    return f"{row['sharding']} {row['shard_size'] or ''}".rstrip()


def rated_too_well(row: Row) -> str:
    """By how much validation found rows of its kind rated too well, if by anything.

    What the model cannot tell apart is nothing.
    """
    share = row.get("rated", {}).get("median", 0.0)
    return f"{share:z.0%}" if share > DIFFERENCE else ""


def too_well(rows: Sequence[Row]) -> str:
    """What that column rests on, for each kind among the rows."""
    kinds = {row["rated"]["kind"]: row["rated"] for row in rows if rated_too_well(row)}
    said = [
        f"{kind} {share_text(one['median'])} in the median of {one['runs']} runs, "
        f"{share_text(one['most'])} at most"
        for kind, one in kinds.items()
    ]
    if not said:
        return ""
    return (
        "too well: published runs looked so much slower than what the model liked "
        f"best ({'; '.join(said)})"
    )


def tight(rows: Sequence[Row], limit: float) -> str:
    """Which rows leave less of the memory free than runs may need beside it."""
    full = [n for n, row in enumerate(rows, 1) if row["memory_bytes"] > _FILLED * limit]
    if not (full and limit):
        return ""
    which = ", ".join(map(str, full))
    fill = f"rows {which} fill" if len(full) > 1 else f"row {which} fills"
    return (
        f"warning: {fill} more than {_FILLED:z.0%} of a GPU's memory, and runs may "
        f"hold a tenth more than is worked out; --memory {_FILLED * limit / 1e9:.3g}GB "
        "leaves that free"
    )


def alike_words(number: int, row: Row) -> str:
    """What the choices differ in that cannot be told from a row."""
    parts = [
        f"{_NAMES.get(key, key)} "
        + ", ".join(v if isinstance(v, str) else f"{v:g}" for v in values)
        for key, values in row["alike_in"].items()
    ]
    return f"row {number} stands for {row['alike']} more: {'; '.join(parts)}"


def verdict(found: Mapping[str, Any]) -> str:
    """What was found in a sentence or two."""
    best = found["rows"][0]
    asked = found["gpus"]
    there = max(asked) if isinstance(asked, list) else asked
    used = f"{best['gpus']:,}" + (f" of {there:,}" if best["gpus"] < there else "")
    step = format_seconds(best["step_time_s"])
    said = (
        f"{degrees(best)} on {used} GPUs: {step} a step, "
        f"{best['tokens_per_s_per_gpu']:,.0f} tokens a second and GPU."
    )
    if best["gpus"] < there:
        said += " No choice that uses more GPUs is faster."
    return f"{said} {_beside_own(best, found['own'])}".rstrip()


def of_own_kind(rows: Sequence[Row]) -> str:
    """The best of the job's own kind, where that is not the best of all."""
    mine = [i for i, row in enumerate(rows) if i and row.get("is_own_kind")]
    return "".join(
        f"The best of the job's own kind is row {i + 1}: "
        f"{format_seconds(rows[i]['step_time_s'])} a step."
        for i in mine
    )


def _beside_own(best: Row, own: Row | None) -> str:
    """How much better the best row is than the degrees that the job had."""
    if own is None:
        return ""
    name = f"the job's own degrees ({degrees(own)})"
    if "error" in own:
        if not has_degrees(own):
            return ""
        return f"{name[0].upper()}{name[1:]} cannot be used: {own['error']}."
    if is_same(own, best):
        return "These are the job's own degrees."
    mine, theirs = best["step_time_s"], own["step_time_s"]
    said = compared("time", mine, theirs, name)
    # The one place that says how sure that is.
    if mine != theirs and abs(mine - theirs) <= DIFFERENCE * theirs:
        said += f", {within_noise(DIFFERENCE)}"
    said = f"{said[0].upper()}{said[1:]}."
    if theirs < mine * (1 - SAME):
        said += " Those were not among the choices: a rule or a list leaves them out."
    return said


def is_same(one: Row, other: Row) -> bool:
    """Whether two rows are of one choice."""
    keys = ("parallelism", "micro_batch", "recompute", "sharding", "shard_size")
    return all(one[key] == other[key] for key in keys)


def how_sure(found: Mapping[str, Any]) -> str:
    """Between what the gain over the job's own degrees lies."""
    saved = found["gain"]
    if saved is None:
        return ""
    before = found["own"]["step_time_s"]
    low, high = (end / before for end in saved["saved_s_interval"])
    said = f"Row 1 likely saves {low:z.0%} to {high:z.0%} of the job's own step"
    if low <= 0 <= high:
        return f"{said}: maybe nothing. Measure both before you change."
    return f"{said}."


def ties(rows: Sequence[Row]) -> str:
    """Which rows the model cannot tell from the first, and what tells them apart."""
    best = rows[0]["step_time_s"]
    near = [row for row in rows if row["step_time_s"] <= best * (1 + DIFFERENCE)]
    if len(near) < 2:
        return ""
    through = "and" if len(near) == 2 else "to"
    said = f"Rows 1 {through} {len(near)} are {within_noise(DIFFERENCE)}."
    best_at: dict[int, list[str]] = {}
    for key, (words, unit) in _TIE_BREAKERS.items():
        values = [row[key] for row in near]
        if max(values) > min(values) * (1 + 1e-6):
            least = values.index(min(values))
            amount = format_bytes if key.endswith("bytes") else "{:,}".format
            text = unit.format(amount(min(values)))
            best_at.setdefault(least, []).append(f"{words} ({text})")
    if not best_at:
        return said
    parts = [f"row {i + 1} {listed(best_at[i])}" for i in sorted(best_at)]
    return f"{said} Of these {'; '.join(parts)}."


def short(found: Mapping[str, Any]) -> str:
    """Why there are fewer rows than were asked for."""
    if not found["is_short"]:
        return ""
    more = named("time_limit")
    return f"Time was up before more choices were placed; {more} gives more."


def fewer(found: Mapping[str, Any]) -> str:
    """Why numbers of GPUs that were asked for have no row of their own."""
    front = found["fronts"]["gpus"]
    if found["is_cut"] and front and front[-1]["gpus"] > min(found["gpus"]):
        return "Time was up before the best with fewer GPUs was known."
    none = [f"{count:,}" for count in found["unusable_gpus"]]
    return f"With {listed(none)} GPUs no legal choice fits." if none else ""


def why_not(best: Row, other: Row, name: str) -> str:
    """Why a row is worse than the best: what grows, what shrinks, and memory."""
    more = other["step_time_s"] - best["step_time_s"]
    share = share_text(abs(more) / best["step_time_s"])
    length = f"{format_seconds(abs(more))} {'more' if more >= 0 else 'less'}, {share}"
    if abs(more) <= SAME * best["step_time_s"]:
        length = "as long"
    said = f"{name} ({_apart(best, other)}) takes {length}"
    changes = list(_changes(best, other))
    said += f": {'; '.join(changes)}." if changes else "."
    spared = other["memory_bytes"] - best["memory_bytes"]
    word = "more" if spared > 0 else "less"
    if format_bytes(other["memory_bytes"]) == format_bytes(best["memory_bytes"]):
        return f"{said} It needs the same memory."
    needs = format_bytes(other["memory_bytes"])
    return f"{said} It needs {needs} of memory, {format_bytes(abs(spared))} {word}."


def _apart(best: Row, other: Row) -> str:
    """The degrees of a row; where they are those of the best, also what differs."""
    said = degrees(other)
    if said != degrees(best):
        return said
    for mine, theirs in zip(_choices(best), _choices(other), strict=True):
        if theirs != mine:
            said += f", {theirs}"
    return said


def _choices(row: Row) -> tuple[str, ...]:
    batch = f"{row['micro_batches']} micro-batches of {row['micro_batch']}"
    return batch, sharding(row), f"recompute {row['recompute']}"


def _changes(best: Row, other: Row) -> Iterator[str]:
    """The parts of the step that differ, the largest first, with their causes."""
    before, after = best["parts_s"], other["parts_s"]
    names = dict.fromkeys((*before, *after))
    by_part = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in names}
    least = 5e-4 * best["step_time_s"]
    for name in sorted(by_part, key=lambda name: -abs(by_part[name])):
        change = by_part[name]
        if abs(change) >= least:
            sign = "+" if change > 0 else "-"
            cause = _cause(name, best, other, change)
            yield f"{name} {sign}{format_seconds(abs(change))}{cause}"


def _cause(part: str, best: Row, other: Row, change: float) -> str:
    """What makes a part of the step of one row differ from that of another."""
    if part == "compute":
        return f" ({_cause_of_compute(best, other, change)})"
    sizes, theirs = best["parallelism"], other["parallelism"]
    keys = {"bubble": ("pp", "vp")}.get(part, (part.removeprefix("exposed "),))
    changed = [
        f"{key} {theirs[key]}, not {sizes[key]}"
        for key in keys
        if key in sizes and sizes[key] != theirs[key]
    ]
    if part == "bubble" and best["micro_batches"] != other["micro_batches"]:
        changed.append(
            f"{other['micro_batches']:,} micro-batches, not {best['micro_batches']:,}"
        )
    if part == "exposed dp" and sharding(best) != sharding(other):
        changed.append(f"{sharding(other)}, not {sharding(best)}")
    return f" ({'; '.join(changed)})" if changed else ""


def _cause_of_compute(best: Row, other: Row, change: float) -> str:
    """What makes one row compute longer: never what it computes less of."""
    mine, theirs = best["recompute"], other["recompute"]
    more = _REPEATED.get(theirs, 1) - _REPEATED.get(mine, 1)
    if mine != theirs and more * change >= 0:
        return f"recompute {theirs}, not {mine}"
    if best["parallelism"]["pp"] != other["parallelism"]["pp"]:
        return "products and stages of another size"
    return "products of another size"
