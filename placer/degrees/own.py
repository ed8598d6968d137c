"""The degrees that the job has by itself, beside which the best ones are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from placer.degrees.choice import Choice
from placer.footprint.stages import footprint
from placer.units import format_bytes

if TYPE_CHECKING:
    from placer.degrees.found import Row
    from placer.degrees.search import Search
    from placer.degrees.space import Space
    from placer.job.model import Job


class Own(NamedTuple):
    """The job's own degrees: as a row, or why they are none."""

    choice: Choice
    row: Row | None
    refusal: str = ""


def own(search: Search, job: Job, space: Space, memory_limit: float) -> Own | None:
    """The job's own degrees on the GPUs and with the batch that are asked for.

    None where a replica finds no number of copies for them, or time is up.
    """
    choice = own_choice(job, space)
    if choice is None:
        return None
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


def own_choice(job: Job, space: Space) -> Choice | None:
    """The job's sizes of a replica, as many of these as GPUs and batch allow."""
    axes = job.parallelism
    replica = axes.tp * axes.cp * axes.pp
    counts = space.gpus or (space.room(replica),)
    most = max(counts) // replica
    samples, rest = divmod(space.global_batch, job.micro_batch)
    copies = [n for n in range(1, min(most, samples) + 1) if samples % n == 0]
    if space.gpus:
        copies = [n for n in copies if n * replica in counts]
    if rest or not copies:
        return None
    dp = copies[-1]
    if axes.tp * axes.cp * dp % (axes.ep * axes.etp):
        return None
    members, mine = dp * axes.cp, Choice.of(job)
    if mine.shard_size and mine.shard_size >= members:  # one shard group is left
        mine = replace(mine, sharding="zero3", shard_size=0)
    if mine.shard_size and members % mine.shard_size:
        return None
    return replace(mine, dp=dp, micro_batches=samples // dp)
