"""placer beside all others on drawn machines: ``python -m benchmarks.drawn``.

Both objectives on every draw of ``benchmarks.cluster_jobs``: placer, its bound, every
order, every mapper that is installed, and with ``--annealed`` an annealing of ten times
placer's processor time, from placer's placement and from the best order. Results are
added to the JSON file one by one, so a run that is stopped goes on where it was. The
exit code is 1 where something is better than placer by more than `WORSE`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import annealing
from benchmarks.attempt import DONE, PLACER, STARTS, Attempt, Spec, Task
from benchmarks.cases import DRAWN
from benchmarks.cluster_jobs import Draw, drawn
from benchmarks.peers import orders
from benchmarks.peers.problem import UNITS, unit_size
from benchmarks.run import PEERS, attempts, specs
from benchmarks.tables import label

OBJECTIVES = ("time", "hop-cost")
WORSE = 5e-4


@dataclass(frozen=True)
class Outcome:
    """What came of one draw and objective.

    Attributes
    ----------
    seed : int
    objective : str
    family, history, kind, launcher : str
    uplink : float
        Oversubscription of the outermost tier.
    ranks, gpus : int
    missing : float
        Share of the GPUs of its leaves that the machine lacks.
    value, lower_bound : float
        Of placer.
    wall_s : float, s
        Of placer.
    note : str
        Its method and status.
    others : mapping of str to float
        Least value of each other, by its name.
    failed : mapping of str to str
        Why others have none.
    """

    seed: int
    objective: str
    family: str
    history: str
    kind: str
    launcher: str
    uplink: float
    ranks: int
    gpus: int
    missing: float
    value: float = 0.0
    lower_bound: float = 0.0
    wall_s: float = 0.0
    note: str = ""
    others: Mapping[str, float] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> tuple[int, str]:
        """Seed and objective."""
        return self.seed, self.objective

    @property
    def gap(self) -> float:
        """Share of the value above the bound."""
        return max(0.0, 1 - self.lower_bound / self.value)

    @property
    def better(self) -> dict[str, float]:
        """Who is better than placer by more than `WORSE`, and by what share."""
        shares = {name: 1 - value / self.value for name, value in self.others.items()}
        return {name: share for name, share in shares.items() if share > WORSE}

    def order_value(self) -> float | None:
        """The least value of the six simple orders, None where no order fits."""
        of_orders = [
            value
            for name, value in self.others.items()
            if name.partition(", whole")[0] in orders.VARIANTS
        ]
        return min(of_orders, default=None)


def measured(
    seed: int, objective: str, peers: Sequence[str], limit: float, *, is_annealed: bool
) -> Outcome:
    """Everything on one draw, in a process of its own."""
    draw = drawn(seed)
    tried = specs(peers, 1, units(draw))
    if is_annealed:
        # Before the mappers: one that takes too long ends the process.
        by_annealing = [Spec(annealing.NAME, variant=start) for start in STARTS]
        is_order = [spec.tool in (PLACER, orders.NAME) for spec in tried]
        tried = (
            [one for one, kept in zip(tried, is_order, strict=True) if kept]
            + by_annealing
            + [one for one, kept in zip(tried, is_order, strict=True) if not kept]
        )
    task = Task(f"{DRAWN}{seed}", objective, limit, tried)
    return _outcome(seed, objective, draw, attempts(task, lambda _: None))


def units(draw: Draw) -> list[str]:
    """Units of contraction of different sizes; where nodes hold runs, a node's GPUs."""
    found: dict[int, str] = {}
    for unit in UNITS:
        found.setdefault(unit_size(draw.job.parallelism, unit), unit)
    if draw.job.launcher != "free":
        node = int(draw.topology.gpus_of_node.max())
        if draw.job.world_size % node == 0:
            found.setdefault(node, str(node))
    return list(found.values())


def _outcome(seed: int, objective: str, draw: Draw, made: Sequence[Attempt]) -> Outcome:
    ours = next(one for one in made if one.spec.tool == PLACER)
    others: dict[str, float] = {}
    failed: dict[str, str] = {}
    for one in made:
        name = _name(one.spec)
        if one.spec.tool == PLACER:
            continue
        if one.status != DONE or one.broken:
            rule = one.broken[0].partition(":")[0] if one.broken else ""
            failed[name] = f"breaks {rule}" if rule else one.status
        else:
            others[name] = min(one.value, others.get(name, one.value))
    return Outcome(
        seed,
        objective,
        draw.family,
        draw.history,
        draw.kind,
        draw.job.launcher,
        draw.topology.tiers[-1].oversubscription,
        draw.job.world_size,
        draw.topology.num_gpus,
        round(draw.missing, 4),
        ours.value,
        ours.lower_bound,
        round(ours.wall_s, 2),
        ours.note if ours.status == DONE else ours.status,
        others,
        {name: why for name, why in failed.items() if name not in others},
    )


def _name(spec: Spec) -> str:
    if spec.tool == annealing.NAME:
        return f"{spec.tool} {spec.variant}"
    return label(spec)


def read(path: Path) -> list[Outcome]:
    """The outcomes of a file; none when it is not there."""
    rows = json.loads(path.read_text()) if path.exists() else []
    return [Outcome(**row) for row in rows]


def write(outcomes: Iterable[Outcome], path: Path) -> None:
    """A line for each outcome, by objective and seed."""
    ordered = sorted(outcomes, key=lambda one: (one.objective, one.seed))
    lines = ",\n".join(json.dumps(asdict(one)) for one in ordered)
    path.write_text(f"[\n{lines}\n]\n")


def joined(new: Outcome, old: Outcome | None) -> Outcome:
    """Also what an earlier run found of others that this one left out."""
    if old is None:
        return new
    fields = asdict(new)
    fields["others"] = {**old.others, **new.others}
    kept = {name: why for name, why in old.failed.items() if name not in new.others}
    fields["failed"] = {**kept, **new.failed}
    return Outcome(**fields)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the file lacks, print losers and wide gaps."""
    parser = argparse.ArgumentParser("python -m benchmarks.drawn")
    parser.add_argument("--draws", type=int, default=128)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--objective", choices=OBJECTIVES, help="default: both")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--step", type=int, default=1, help="between two seeds")
    parser.add_argument("--annealed", action="store_true", help="anneal as well")
    parser.add_argument("--time-limit", type=float, default=60.0, help="s an attempt")
    parser.add_argument("--again", action="store_true", help="also what the file has")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    peers = [name for name in options.peers.split(",") if name]
    found = {one.key: one for one in (read(options.json) if options.json else [])}
    chosen = [options.objective] if options.objective else OBJECTIVES
    seeds = range(options.first, options.first + options.draws, options.step)
    keys = [(seed, objective) for seed in seeds for objective in chosen]
    for seed, objective in keys:
        if (seed, objective) in found and not options.again:
            continue
        one = measured(
            seed, objective, peers, options.time_limit, is_annealed=options.annealed
        )
        found[one.key] = joined(one, found.get(one.key))
        print(told(found[one.key]), flush=True)
        if options.json:
            write(found.values(), options.json)
    losers = [found[key] for key in keys if found[key].better]
    for one in losers:
        print(f"worse: {told(one)}", file=sys.stderr)
    return int(bool(losers))


def told(one: Outcome) -> str:
    """An outcome in one line."""
    better = ", ".join(f"{name} -{share:.2%}" for name, share in one.better.items())
    where = f"{one.seed} {one.family}, {one.history}, {one.kind}, {one.launcher}"
    beaten = f", beaten by {better}" if better else ""
    return (
        f"{where}, {one.ranks:,} ranks, {one.objective}: {one.value:,.6g}, "
        f"gap {one.gap:.3%}, {one.wall_s:.1f} s{beaten}"
    )


if __name__ == "__main__":
    sys.exit(main())
