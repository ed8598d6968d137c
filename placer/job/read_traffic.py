"""What a job sends and how: synchronisation of gradients, chunks of the ends."""

from __future__ import annotations

from dataclasses import replace

from placer.documents import Section, Value, open_document
from placer.documents.files import beside
from placer.documents.records import read
from placer.job.axes import AXES, EXPERT_AXES, MAX_WORLD_SIZE, Parallelism
from placer.job.models import Model
from placer.job.parallel import DataParallel, EndStages
from placer.job.traffic import Group

MAX_MEMBERS = 1 << 20

_TAKEN = (*AXES, *EXPERT_AXES, "vp", "dp_cp")


def decode_groups(job: Section, world_size: int) -> tuple[Group, ...]:
    """All communicators of a job; problems go to the job's document.

    A ``world_size`` of 0 means that it is unknown and ranks cannot be checked.
    """
    value = job.get("groups")
    if value is None or value.kind != "mapping":
        return _decode_list(job, world_size)
    name = value.section().text("file")
    if job.document.problems:
        return ()
    document = open_document(beside(job.document.source, name))
    groups = _decode_list(document.root, world_size)
    if not document.root.has("groups"):
        document.root.problem('the key "groups" is missing')
    document.finish()
    return groups


def _decode_list(job: Section, world_size: int) -> tuple[Group, ...]:
    names: set[str] = set()
    groups = []
    members = 0
    for value in job.items("groups"):
        section = value.section()
        group = _decode_group(section, world_size)
        if group.name in names:
            message = f'there is another group called "{group.name}"'
            section.problem(message, "name", "list all its members in one entry")
        names.add(group.name)
        groups.append(group)
        members += sum(map(len, group.ranks))
        if members > MAX_MEMBERS:
            value.problem(f"more than {MAX_MEMBERS} members in all groups together")
            break
    return tuple(groups)


def _decode_group(section: Section, world_size: int) -> Group:
    group = read(section, Group, ranks=_ranks(section, world_size))
    if group.name in _TAKEN:
        message = f'"{group.name}" is the name of an axis'
        section.problem(message, "name", "choose another")
    return group


def _ranks(section: Section, world_size: int) -> tuple[tuple[int, ...], ...]:
    """Members of each group; ``all`` is one group of the whole world."""
    value = section.get("ranks", required=True)
    if value is None:
        return ()
    if value.kind == "text":
        if value.content != "all":
            hint = "write a list of lists of ranks, or all"
            value.problem(f"expected ranks, got {value.shown()}", hint)
        elif not world_size and not section.document.problems:
            value.problem("no parallelism says how many these are", "list the ranks")
        return (tuple(range(world_size)),)
    rows = value.items()
    if value.kind == "list" and not rows:
        value.problem("the list of groups is empty")
    highest = (world_size or MAX_WORLD_SIZE) - 1
    problems_before = len(section.document.problems)
    members = tuple(tuple(row.integers(maximum=highest)) for row in rows)
    if len(section.document.problems) == problems_before:
        _check_members(rows, members)
    return members


def _check_members(rows: list[Value], members: tuple[tuple[int, ...], ...]) -> None:
    seen: set[int] = set()
    for row, ranks in zip(rows, members, strict=True):
        if not ranks:
            row.problem("the group has no members")
        for index, rank in enumerate(ranks):
            if rank in seen:
                message = f"rank {rank} is already in a group of this name"
                row.items()[index].problem(message)
                break
            seen.add(rank)


def default_bucket(dp: int) -> int:
    """Parameters of a bucket when the job does not say: ``max(40 M, 1 M x dp)``.

    Megatron-LM d98e8a64, ``core/distributed/distributed_data_parallel.py``.
    """
    return max(40_000_000, 1_000_000 * dp)


def decode_sync(
    section: Section, parallelism: Parallelism, degrees: tuple[int, int] | None
) -> DataParallel:
    """How gradients and parameters are kept in step.

    ``degrees`` are ``dp_replicate`` and ``dp_shard`` where the job gives those. They
    say how parameters are sharded: over ``dp_shard x cp`` ranks (torchtitan,
    ``distributed/parallel_dims.py``).
    """
    usual, implied_size = _implied(degrees, parallelism.cp)
    defaults = {"sharding": usual, "bucket_parameters": default_bucket(parallelism.dp)}
    found = read(section, DataParallel, defaults)
    sharding = found.sharding.replace("fsdp", "zero3")
    if degrees and sharding != usual:
        message = f"dp_replicate {degrees[0]} and dp_shard {degrees[1]} make it {usual}"
        section.problem(message, "sharding", "leave sharding out")
    members = parallelism.dp * parallelism.cp
    size = found.shard_size or implied_size or 0
    if sharding == "hsdp":
        section.get("shard_size", required=implied_size is None)
        if implied_size not in (None, size):
            message = f"dp_shard x cp = {implied_size} is not {size}"
            section.problem(message, "shard_size", "leave shard_size out")
        if size and members % size and not section.document.problems:
            message = f"{size} does not divide dp x cp = {members}"
            section.problem(message, "shard_size")
    instances = found.optimizer_instances
    if instances > 1 and sharding in ("zero1", "zero2") and members % instances:
        message = f"{instances} does not divide dp x cp"
        section.problem(message, "optimizer_instances")
    for name, given, of in (
        ("shard_size", section.has("shard_size"), ("hsdp",)),
        ("optimizer_instances", instances > 1, ("zero1", "zero2")),
        ("reduce_once", found.reduce_once, ("zero2",)),
        ("keep_parameters", found.keep_parameters, ("zero3", "hsdp")),
    ):
        if given and sharding not in of:
            hint = "remove it" + (", or set sharding: hsdp" if of == ("hsdp",) else "")
            message = f"is for sharding {' and '.join(of)} only, not {sharding}"
            section.problem(message, name, hint)
    return replace(
        found, sharding=sharding, shard_size=size if sharding == "hsdp" else 0
    )


def _implied(degrees: tuple[int, int] | None, cp: int) -> tuple[str, int | None]:
    """Sharding and size of a shard group that go without saying."""
    if degrees is None:
        return "zero1", None
    replicate, shard = degrees
    if shard * cp == 1:
        return "ddp", None
    return ("zero3", None) if replicate == 1 else ("hsdp", shard * cp)


def decode_stages(
    root: Section, model: Model | None, parallelism: Parallelism
) -> EndStages:
    """What embedding and loss count for when layers are spread over chunks.

    Neither may count for more than one chunk holds.
    """
    section = root.section("stages")
    ends = read(section, EndStages)
    chunks = parallelism.pp * parallelism.vp
    if model is None:
        if root.has("stages"):
            root.problem("needs a model", "stages", "add model, or remove it")
    elif chunks > 1 and not section.document.problems:
        chunk = (model.layers + ends.embedding + ends.loss) / chunks
        for key, layers in (("embedding", ends.embedding), ("loss", ends.loss)):
            if layers > chunk:
                message = (
                    f"counts for {layers:g} layers, more than the {chunk:g} of one of "
                    f"pp x vp = {chunks} chunks"
                )
                section.problem(message, key)
    return ends
