"""What a run of the placement benchmark found, and its JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.attempt import DONE, PLACER, Attempt, Spec
from benchmarks.cases import RANDOM
from benchmarks.peers import orders

if TYPE_CHECKING:
    from pathlib import Path

SAME = 1e-9  # relative difference of values that count as equal


@dataclass(frozen=True)
class Row:
    """The best attempt of a tool, with one unit of contraction, on one case.

    Attributes
    ----------
    best : Attempt
        Of least value, then of least time; a failure if there is no other.
    tries : int
        Attempts that gave a placement.
    worst : float
        The largest value among them.
    """

    best: Attempt
    tries: int
    worst: float

    @property
    def kind(self) -> tuple[str, str, str]:
        """Tool, order and unit, which make a row of their own."""
        return kind(self.best.spec)

    @property
    def is_done(self) -> bool:
        """Whether there is a placement."""
        return self.best.status == DONE

    @property
    def is_valid(self) -> bool:
        """Whether there is a placement that keeps the job's hard rules."""
        return self.is_done and not self.best.broken


@dataclass(frozen=True)
class Result:
    """All rows of one case.

    Attributes
    ----------
    case, objective : str
    ranks, gpus, leaves : int
    sizes : mapping of str to int
        Members of each axis.
    weights : mapping of str to float
        Weight of an edge of each axis.
    inside : float
        Hop cost if every edge stayed in a leaf: total weight x distance in a leaf.
    rows : sequence of Row
        The first is placer's.
    """

    case: str
    objective: str
    ranks: int
    gpus: int
    leaves: int
    sizes: Mapping[str, int]
    weights: Mapping[str, float]
    inside: float
    rows: Sequence[Row]

    @property
    def ours(self) -> Attempt:
        """The best attempt of placer.

        Raises
        ------
        ValueError
            If placer gave no placement.
        """
        first = self.rows[0]
        if first.best.spec.tool != PLACER or not first.is_done:
            raise ValueError(f"{self.case}: no placement by placer")
        return first.best

    @property
    def distinct(self) -> list[Row]:
        """The rows without orders that come to the same as one before."""
        seen = set()
        kept = []
        for row in self.rows:
            if row.best.spec.tool == orders.NAME and row.is_done:
                crossings = [tuple(tiers) for tiers in row.best.crossings.values()]
                outcome = (row.best.value, *crossings)
                if outcome in seen:
                    continue
                seen.add(outcome)
            kept.append(row)
        return kept

    @property
    def others(self) -> list[Row]:
        """Valid rows of all the others."""
        return [row for row in self.distinct[1:] if row.is_valid]

    def gap(self, value: float) -> float:
        """Share of a value that lies above placer's lower bound."""
        return max(0.0, 1 - self.ours.lower_bound / value)

    def better(self) -> list[Row]:
        """Rows that beat placer."""
        least = self.ours.value * (1 - SAME)
        return [row for row in self.others if row.best.value < least]

    def faster(self) -> list[Row]:
        """Rows that are as good as placer and took less time."""
        most = self.ours.value * (1 + SAME)
        return [
            row
            for row in self.others
            if row.best.value <= most and row.best.wall_s < self.ours.wall_s
        ]

    def with_earlier(self, earlier: Result) -> Result:
        """Also the rows of tools that this run left out."""
        mine = {row.kind for row in self.rows}
        kept = [row for row in earlier.rows if row.kind not in mine]
        return replace(self, rows=[*self.rows, *kept])


@dataclass(frozen=True)
class Report:
    """Results of one or several runs on one computer.

    Attributes
    ----------
    computer : str
    versions : mapping of str to str
        Of the peers that are installed.
    time_limit : float, s
        For one attempt.
    results : sequence of Result
    """

    computer: str
    versions: Mapping[str, str]
    time_limit: float
    results: Sequence[Result]

    def of(self, objective: str, *, random: bool = False) -> list[Result]:
        """Results for an objective, on instances or on random machines, by name."""
        found = [
            result
            for result in self.results
            if result.objective == objective
            and result.case.startswith(RANDOM) == random
        ]
        return sorted(
            found, key=lambda result: (len(result.case) * random, result.case)
        )

    def with_earlier(self, earlier: Report) -> Report:
        """Also the rows of an earlier run, where this one has none."""
        by_name = {(r.objective, r.case): r for r in earlier.results}
        for result in self.results:
            key = result.objective, result.case
            old = by_name.get(key)
            by_name[key] = result.with_earlier(old) if old else result
        versions = {**earlier.versions, **self.versions}
        return Report(self.computer, versions, self.time_limit, [*by_name.values()])


def kind(spec: Spec) -> tuple[str, str, str]:
    """Tool, order and unit of an attempt."""
    # Orders differ from each other in more than a setting.
    return spec.tool, spec.variant if spec.tool == orders.NAME else "", spec.unit


def best_of(made: Sequence[Attempt]) -> list[Row]:
    """The best attempt of each tool and contraction, in the order they were made."""
    by_kind: dict[tuple[str, str, str], list[Attempt]] = {}
    for one in made:
        by_kind.setdefault(kind(one.spec), []).append(one)
    return [_best(of_kind) for of_kind in by_kind.values()]


def _best(of_kind: Sequence[Attempt]) -> Row:
    done = [one for one in of_kind if one.status == DONE]
    if not done:
        return Row(of_kind[0], 0, 0.0)
    kept = [one for one in done if not one.broken] or done
    best = min(kept, key=lambda one: (one.value, one.wall_s))
    return Row(best, len(done), max(one.value for one in done))


def decoded(fields: Mapping[str, Any]) -> Attempt:
    """The attempt that ``asdict`` made ``fields`` of."""
    return Attempt(**{**fields, "spec": Spec(**fields["spec"])})


def write(report: Report, path: Path) -> None:
    """Write the report as JSON, a line for each result."""
    fields = asdict(report)
    lines = ",\n".join(json.dumps(result) for result in fields.pop("results"))
    head = json.dumps(fields).removesuffix("}")
    path.write_text(f'{head}, "results": [\n{lines}\n]}}\n')


def read(path: Path) -> Report:
    """The report that `write` wrote."""
    fields = json.loads(path.read_text())
    results = [
        Result(
            **{
                **result,
                "rows": [
                    Row(**{**row, "best": decoded(row["best"])})
                    for row in result["rows"]
                ],
            }
        )
        for result in fields["results"]
    ]
    return Report(**{**fields, "results": results})
