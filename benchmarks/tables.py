"""Tables of the placement benchmark in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from benchmarks.attempt import NOT_FOR_THIS, PLACER, Spec
from benchmarks.peers import mt_kahypar, orders
from benchmarks.results import SAME, Result, Row

CONTRACTED = {"rank": "", "tp": " + tp", "stage": " + stage"}
OF_ORDER = {"rank": "", "tp": ", whole tp groups", "stage": ", whole stages"}


def label(spec: Spec) -> str:
    """What a row is called."""
    if spec.tool == orders.NAME:
        return spec.variant + OF_ORDER.get(spec.unit, f", whole {spec.unit} ranks")
    return spec.tool + CONTRACTED.get(spec.unit, f" + {spec.unit} ranks")


def case_table(result: Result) -> Iterator[str]:
    """Every tool on one case, best first; those without a placement last."""
    is_time = result.objective == "time"
    value = "step time" if is_time else "J"
    axes = list(result.ours.crossings)
    excess = "" if is_time else " X/X_LB |"
    yield (
        f"| tool | {value} | gap |{excess} {' / '.join(axes)} edges that leave a leaf "
        "| wall | in the tool | memory | remarks |"
    )
    yield "|---|--:|--:|" + "--:|" * (not is_time) + "--:|--:|--:|--:|---|"
    done = [row for row in result.distinct if row.is_done]
    for row in sorted(done, key=lambda row: (bool(row.best.broken), row.best.value)):
        yield _line(result, row)
    columns = 7 if is_time else 8
    for row in result.rows:
        if not row.is_done:
            status = row.best.status
            if status == NOT_FOR_THIS:  # by every setting, so the units are too large
                status = "does not fit"
            yield f"| {label(row.best.spec)} |{' |' * (columns - 1)} {status} |"


def _line(result: Result, row: Row) -> str:
    best = row.best
    is_time = result.objective == "time"
    gap = percent(result.gap(best.value))
    cells = [label(best.spec), shown(result, best.value), gap]
    if not is_time:
        cells.append(f"{ratio(result, best.value):.3f}")
    outside = (f"{sum(tiers[1:]):,}" for tiers in best.crossings.values())
    cells += [
        " / ".join(outside),
        seconds(best.wall_s),
        seconds(best.tool_s),
        f"{best.peak_bytes / 1e6:,.0f} MB",
        "; ".join(remarks(result, row)).replace("|", "\\|"),
    ]
    if best.spec.tool == PLACER:
        cells[0] = f"**{cells[0]}**"
    return f"| {' | '.join(cells)} |"


def shown(result: Result, value: float) -> str:
    """A value in the unit of the objective."""
    return f"{value:.5f} s" if result.objective == "time" else f"{value:,.0f}"


def seconds(time: float) -> str:
    """A time of the order of a second."""
    if time < 1e-3:
        return "< 1 ms"
    return f"{time:.1f} s" if time >= 1 else f"{time * 1e3:.0f} ms"


def percent(share: float) -> str:
    """A share, rounded up so as not to promise too much; 0 when nothing is left."""
    if share <= SAME:
        return "0"
    return f"{math.ceil(share * 1e5) / 1e5:.3%}"


def ratio(result: Result, value: float) -> float:
    """Hop cost outside leaves, in that of the lower bound."""
    least = result.ours.lower_bound - result.inside
    return (value - result.inside) / least if least > 0 else math.nan


def remarks(result: Result, row: Row) -> Iterator[str]:
    """What is to be known about a row."""
    best = row.best
    if best.spec.tool == PLACER:
        yield best.note
    elif best.spec.tool != orders.NAME:
        if best.spec.tool == mt_kahypar.NAME and (
            result.leaves > mt_kahypar.TARGETS_AT_MOST
        ):
            yield "multisection"
        yield best.spec.variant
    worst = shown(result, row.worst)
    if worst != shown(result, best.value):
        yield f"worst of {row.tries}: {worst}"
    if best.moved:
        yield f"over capacity, {best.moved:,} ranks moved"
    if best.broken:
        yield f"**breaks a rule**: {best.broken[0].partition(':')[0]}"


def sizes(result: Result) -> str:
    """The axes of a job that have more than one member."""
    return " ".join(f"{axis}{n}" for axis, n in result.sizes.items() if n > 1)


def overview(results: Sequence[Result]) -> Iterator[str]:
    """A line a case: placer, the best peer without and with contraction, best order."""
    yield (
        "| case | ranks | GPUs | placer | gap | wall | best mapper | + contraction "
        "| best order |"
    )
    yield "|---|--:|--:|--:|--:|--:|---|---|---|"
    for result in results:
        ours = result.ours
        ordered: list[Row] = []
        raw: list[Row] = []
        contracted: list[Row] = []
        for row in result.others:
            if row.best.spec.tool == orders.NAME:
                ordered.append(row)
            else:
                (raw if row.best.spec.unit == "rank" else contracted).append(row)
        cells = (
            result.case,
            f"{result.ranks:,}",
            f"{result.gpus:,}",
            shown(result, ours.value),
            percent(result.gap(ours.value)),
            seconds(ours.wall_s),
            *(_winner(result, rows) for rows in (raw, contracted, ordered)),
        )
        yield f"| {' | '.join(cells)} |"


def _winner(result: Result, rows: Sequence[Row]) -> str:
    """The best of some rows: by how much it is above placer, and its time."""
    if not rows:
        return "none"
    best = min(rows, key=lambda row: (row.best.value, row.best.wall_s)).best
    return f"{label(best.spec)}: {against(result, best.value)}, {seconds(best.wall_s)}"


def against(result: Result, value: float) -> str:
    """A value beside placer's."""
    share = value / result.ours.value - 1
    if abs(share) <= SAME:
        return "equal"
    return f"{share:+.3%}" if share > 0 else f"**{share:+.3%}**"


def random_table(results: Sequence[Result]) -> Iterator[str]:
    """How often placer is better, equal and worse than the best that a tool found."""
    yield (
        "| best of | machines | placer better | equal | placer worse | median | most |"
    )
    yield "|---|--:|--:|--:|--:|--:|--:|"
    shares_of: dict[str, list[float]] = {}
    for result in results:
        best: dict[str, float] = {}
        for row in filter(lambda row: row.is_valid, result.rows[1:]):
            tool, above = row.best.spec.tool, row.best.value / result.ours.value - 1
            best[tool] = min(above, best.get(tool, above))
        for tool, above in best.items():
            shares_of.setdefault(tool, []).append(above)
    for name, shares in sorted(shares_of.items()):
        better = sum(share > SAME for share in shares)
        worse = sum(share < -SAME for share in shares)
        yield (
            f"| {name} | {len(shares)} | {better} | {len(shares) - better - worse} "
            f"| {worse} | {median(shares):+.3%} | {max(shares):+.2%} |"
        )


def gap_table(results: Sequence[Result]) -> Iterator[str]:
    """Machines, the widest gap first."""
    yield "| machine | job | weights | ranks | GPUs | placer | gap | best other |"
    yield "|---|---|---|--:|--:|--:|--:|---|"
    for result in sorted(results, key=lambda result: -result.gap(result.ours.value)):
        value = result.ours.value
        gap = percent(result.gap(value))
        weights = " ".join(f"{axis} {w:g}" for axis, w in result.weights.items())
        yield (
            f"| {result.case} | {sizes(result)} | {weights} | {result.ranks:,} "
            f"| {result.gpus:,} | {shown(result, value)} | {gap} "
            f"| {_winner(result, result.others)} |"
        )
