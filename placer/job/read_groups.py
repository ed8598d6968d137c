"""The ``groups`` list of a job: communicators of the user's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placer.documents import open_document
from placer.documents.files import beside
from placer.documents.records import read
from placer.job.axes import AXES, EXPERT_AXES, MAX_WORLD_SIZE
from placer.job.traffic import Group

if TYPE_CHECKING:
    from placer.documents import Section, Value

MAX_MEMBERS = 1 << 20

_TAKEN = (*AXES, *EXPERT_AXES, "vp", "dp_cp")


def decode_groups(job: Section, world_size: int) -> tuple[Group, ...]:
    """All communicators of a job; problems go to the job's document.

    A ``world_size`` of 0 means that it is unknown and ranks cannot be checked.

    Raises
    ------
    InputError
        If the file that the job names instead cannot be read, or is wrong.
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
    members = tuple(tuple(row.integers(maximum=highest)) for row in rows)
    if not section.document.problems:
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
