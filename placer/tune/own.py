"""The degrees that the job has by itself, beside which the best ones are shown."""

from __future__ import annotations

from typing import NamedTuple

from placer.base.units import format_bytes
from placer.cost.footprint.stages import footprint
from placer.job.model import Job
from placer.tune.choice import Choice
from placer.tune.found import Row
from placer.tune.search import Search
from placer.tune.space import Space


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
