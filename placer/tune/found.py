"""What a search over choices found, how far it is, and its best of some sort.

Beside the best stand the degrees that the job has by itself (`own`).

``first`` is the search for the best of those that are wanted (`placer.tune.search`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from placer.base.units import format_bytes
from placer.cost.footprint.stages import footprint
from placer.job.model import Job
from placer.tune.choice import Choice
from placer.tune.evaluate import Answer
from placer.tune.kinds import methods
from placer.tune.space import Space
from placer.tune.waiting import Entry, Known

if TYPE_CHECKING:
    from placer.tune.search import Search


class Row(NamedTuple):
    """A choice that was placed; the bytes are those of `footprint`, `restart_bytes`."""

    choice: Choice
    answer: Answer
    memory: float
    restart: float


@dataclass(frozen=True)
class Found:
    """What a search found."""

    # Best first, no two of them alike. Nothing comes before the first unless
    # ``is_cut``; the others are the best of those that were placed.
    rows: list[Row]
    placed: list[Row]  # all that were placed, best first
    # by_gpus and by_memory: the choices that none beats in step time and in GPUs, or in
    # the memory of a GPU; fastest first. Empty unless asked for.
    by_gpus: list[Row]
    by_memory: list[Row]
    considered: int  # legal choices
    # too_large and infeasible: of them, those that do not fit into memory and those of
    # which no placement was found, among the choices that might have been the best.
    too_large: int
    infeasible: int
    # Those with a bound above the best; where time was up first, those not looked at.
    beaten: int
    # s: no choice that was not placed has a shorter step; 0 where time was up before
    # all were listed.
    least_s: float
    # Whether time was up before the first row was proved, and ``by_gpus`` and
    # ``by_memory`` were whole.
    is_cut: bool
    # Whether time was up before there were as many rows as were asked for.
    is_short: bool = False
    # Of each row the others that were placed and cannot be told from it.
    alike: list[list[Row]] = field(default_factory=list)
    # The row that is, or is like, the best of the same methods as the job's own.
    of_kind: int | None = None


class State(NamedTuple):
    """How far a search is, for progress.

    Legal choices found so far, those placed, the shortest step of these, and the lower
    bound that was looked at last; s.
    """

    considered: int
    placed: int
    best_s: float
    least_s: float


First = Callable[[Callable[[Entry], bool]], Row | None]


def by_gpus(first: First, best: Row | None) -> list[Row]:
    """The best choice, then the best with fewer GPUs, and so on."""
    front = []
    while best is not None:
        front.append(best)
        most = best.choice.gpus

        def is_fewer(entry: Entry, most: int = most) -> bool:
            return entry.choice.gpus < most

        best = first(is_fewer)
    return front


def by_memory(
    first: First, best: Row | None, longest: float, needs: Callable[[Choice], float]
) -> list[Row]:
    """The best choice, then the best with less memory, and so on.

    ``longest`` (s): steps that are longer are not wanted. ``needs``: bytes of a choice.
    """
    front: list[Row] = []
    while best is not None:
        if front and best.answer.step_time_s <= front[-1].answer.step_time_s:
            front.pop()  # as fast, with less
        front.append(best)
        most = best.memory

        def is_less(entry: Entry, most: float = most) -> bool:
            known = entry.known < Known.TRAFFIC
            need = needs(entry.choice) if known else 0.0
            return entry.bound_s <= longest and need < most

        best = first(is_less)
    return front


def best_of_kind(first: First, own: Choice) -> Row | None:
    """The best choice of the same methods as the job's own."""

    def is_wanted(entry: Entry) -> bool:
        choice = entry.choice
        if entry.known >= Known.TRAFFIC:  # how it shards is still open
            choice = choice._replace(sharding=own.sharding)
        return methods(choice) == methods(own)

    return first(is_wanted)


class Own(NamedTuple):
    """The job's own degrees: as a row, or why they are none."""

    choice: Choice
    row: Row | None
    refusal: str = ""


def own(
    search: Search, job: Job, choice: Choice | str, memory_limit: float
) -> Own | None:
    """The job's own degrees, or the reason why they are not among the choices.

    None where time is up.
    """
    if isinstance(choice, str):
        return Own(Choice.of(job), None, choice)
    needs = footprint(choice.applied(job))
    if needs is not None and needs.total > memory_limit:
        need, limit = format_bytes(needs.total), format_bytes(memory_limit)
        return Own(choice, None, f"{need} of memory needed, {limit} in a GPU")
    answer = search.ask(choice)
    if answer is None:
        return None
    if answer.refusal:
        return Own(choice, None, answer.refusal)
    return Own(choice, search.row(choice, answer))


def own_choice(job: Job, space: Space) -> Choice | str:
    """The job's sizes of a replica, as many of these as GPUs and batch allow.

    Where no number of copies is legal the reason instead.
    """
    axes = job.parallelism
    replica = axes.tp * axes.cp * axes.pp
    counts = space.gpus or (space.room(replica),)
    samples, rest = divmod(space.global_batch, job.micro_batch)
    if rest:
        batch = f"{space.global_batch:,} samples"
        return f"micro-batches of {job.micro_batch} do not divide a batch of {batch}"
    most = max(counts) // replica
    copies = [n for n in range(1, min(most, samples) + 1) if samples % n == 0]
    if space.gpus:
        copies = [n for n in copies if n * replica in counts]
    if not most:
        return f"a replica has {replica:,} ranks, on {max(counts):,} GPUs"
    if not copies:
        of = f"replicas of {replica:,} ranks that divides {samples:,} micro-batches"
        return f"no number of {of} takes the GPUs asked for"
    dp = copies[-1]
    if axes.tp * axes.cp * dp % (axes.ep * axes.etp):
        ranks = f"{axes.tp * axes.cp * dp:,} ranks of a stage"
        return f"ep {axes.ep} x etp {axes.etp} does not divide the {ranks}"
    members, mine = dp * axes.cp, Choice.of(job)
    if mine.shard_size and mine.shard_size >= members:  # one shard group is left
        mine = mine._replace(sharding="zero3", shard_size=0)
    if mine.shard_size and members % mine.shard_size:
        ranks = f"{members:,} ranks with the same parameters"
        return f"shard groups of {mine.shard_size:,} do not divide {ranks}"
    return mine._replace(dp=dp, micro_batches=samples // dp)
