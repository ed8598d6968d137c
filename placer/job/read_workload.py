"""Reading a workload: roles, each a job of its own, and transfers between them.

It becomes one `Job`. Its ranks are those of all roles, one role after the other and one
instance after the other.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from placer.base.errors import InputError
from placer.base.units import parse_bytes, parse_time
from placer.documents import closest, open_document
from placer.documents.files import beside, is_file
from placer.documents.presets import find_file
from placer.job.axes import AXES, EXPERT_AXES, Parallelism
from placer.job.model import Job
from placer.job.models import expert_parameters, total_parameters
from placer.job.read_rules import decode_rules
from placer.job.roles import Role, Transfer
from placer.job.shards import PATTERNS, merged, pairs_of, transfer_flows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from placer.documents import Document, Section, Value

FORMAT = "placer/workload"
MAX_INSTANCES, MAX_RANKS = 1 << 16, 1 << 20
# Of all transfers together, before those of the same two ranks are added up.
MAX_FLOWS = 1 << 22

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_SERVING = ("bytes_per_token", "tokens_per_s")


def decode_workload(document: Document, decode: Callable[[Document], Job]) -> Job:
    """The job of a workload, without its digest.

    Parameters
    ----------
    document : Document
    decode : callable
        Reads the job of a role.

    Raises
    ------
    InputError
        If anything in it is wrong; all problems at once.
    """
    document.check_format(FORMAT)
    root = document.root
    transfers_of = [value.section() for value in root.items("transfers", required=True)]
    cycle = _cycle(transfers_of)
    sections = [value.section() for value in root.items("roles", required=True)]
    names = _names(sections)
    roles = _roles(sections, names, cycle, decode)
    by_name = {role.name: role for role in roles}
    transfers = [_transfer(section, names, by_name, cycle) for section in transfers_of]
    launcher = root.section("launcher").choice(
        "ranks", ("node-contiguous", "free"), "node-contiguous"
    )
    world = sum(role.world_size for role in roles)
    rules = decode_rules(root.section("rules"), world)
    name, description = root.text("name"), root.text("description", "")
    sources = tuple(root.texts("sources"))
    if len({transfer.overlap for transfer in transfers}) > 1:
        message = "transfers run together: overlap is true for all, or for none"
        root.problem(message, "transfers")
    if world > MAX_RANKS:
        root.problem(f"more than {MAX_RANKS} ranks in all roles together", "roles")
    document.finish()
    traffic = merged(
        (transfer_flows(t, by_name[t.sender], by_name[t.receiver]) for t in transfers),
        any(transfer.overlap for transfer in transfers),
        max((transfer.fixed_time for transfer in transfers), default=0.0),
    )
    return Job(
        name=name,
        parallelism=Parallelism(dp=world),
        require={
            f"{role.name}.{axis}": tier
            for role in roles
            for axis, tier in role.job.require.items()
        },
        launcher=launcher,
        traffic=traffic,
        rules=rules,
        roles=tuple(roles),
        transfers=tuple(transfers),
        description=description,
        sources=sources,
    )


def _cycle(transfers: list[Section]) -> float:
    """Steps of a cycle: those between two of the rarest transfers; 1 when serving."""
    return max(
        (
            section.number("every", 1.0, minimum=1e-9, maximum=1e9)
            for section in transfers
        ),
        default=1.0,
    )


def _names(sections: list[Section]) -> list[str]:
    """The names of all roles, of those whose job cannot be read as well."""
    names: list[str] = []
    for section in sections:
        name = section.text("name")
        if name and not _NAME.fullmatch(name):
            hint = "letters, digits, - and _, at most 63, a letter first"
            section.problem("cannot be used as a name", "name", hint)
        if name and name in names:
            section.problem(f'there is another role called "{name}"', "name")
        names.append(name)
    return names


def _roles(
    sections: list[Section],
    names: list[str],
    cycle: float,
    decode: Callable[[Document], Job],
) -> list[Role]:
    """The roles whose job can be read."""
    roles: list[Role] = []
    for section, name in zip(sections, names, strict=True):
        instances = section.integer("instances", 1, minimum=1, maximum=MAX_INSTANCES)
        steps = section.number("steps", cycle, maximum=1e9)
        job = _job_of_role(section, name, decode)
        if job is not None:
            first = sum(role.world_size for role in roles)
            roles.append(Role(name, job, instances, steps, first))
    return roles


def _job_of_role(
    section: Section, name: str, decode: Callable[[Document], Job]
) -> Job | None:
    """The job of one instance, at the size and under the requirements of the role."""
    value = section.get("job", required=True)
    gpus = section.integer("gpus", 0, maximum=MAX_RANKS)
    require = {key: tier.text() for key, tier in section.section("require").entries()}
    if value is None:
        return None
    from placer.job.resize import with_gpus  # which reads jobs by this module

    document = section.document
    try:
        job = with_gpus(_read_job(value, name, decode), gpus)
    except InputError as error:
        for problem in error.problems:
            if problem.source not in ("", document.source):
                if problem.line:
                    document.add(problem)
                    continue
                message = f"{problem.source}: {problem.message}"
                problem = replace(problem, message=message)
            key = ".".join(filter(None, (value.key, problem.key)))
            place = {} if problem.line else _place(value)
            document.add(replace(problem, key=key, **place))
        return None
    if job.traffic is not None or job.rules or job.roles:
        what = "traffic" if job.traffic else "rules" if job.rules else "roles"
        value.problem(f"the job of a role cannot have {what}", "give the workload them")
        return None
    known = (*AXES, *EXPERT_AXES, *(group.name for group in job.groups))
    for axis in require:
        if axis not in known:
            hint = closest(axis, known) or f"known: {', '.join(known)}"
            message = "there is no such axis or group"
            section.section("require").problem(message, axis, hint)
    return replace(job, require={**job.require, **require})


def _read_job(value: Value, name: str, decode: Callable[[Document], Job]) -> Job:
    """A job that is named (a file beside, or a preset) or written out."""
    document = value.document
    if value.kind == "mapping":
        start = {"format": "placer/job", "version": 1, "name": name or "role"}
        return decode(document.inner(value, start))
    given = value.text()
    path = beside(document.source, given)
    if not is_file(path) and (preset := find_file("jobs", given)) != given:
        path = preset
    return decode(open_document(path))


def _place(value: Value) -> Mapping[str, Any]:
    place = value.place
    return {"source": place.source, "line": place.line, "column": place.column}


def _transfer(
    section: Section, names: list[str], roles: Mapping[str, Role], cycle: float
) -> Transfer:
    ends = [_end(section, key, names) for key in ("from", "to")]
    if ends[0] and ends[0] == ends[1]:
        section.problem("is the role that sends", "to", "name another role")
    pattern = section.choice("pattern", PATTERNS, "reshard")
    size = _size(section, pattern, roles, ends, cycle)
    fixed = section.quantity("fixed_time", parse_time, 0.0)
    fixed *= cycle / section.number("every", 1.0, minimum=1e-9, maximum=1e9)
    sender, receiver = (roles.get(end) for end in ends)
    share = section.number("expert_share", -1.0, minimum=0.0, maximum=1.0)
    if sender is not None and receiver is not None:
        if share < 0:
            share = _expert_share(section, pattern, sender, receiver)
        everyone = sender.world_size * receiver.world_size
        if pattern == "all_to_all" and everyone > MAX_FLOWS:
            section.problem(f"more than {MAX_FLOWS} flows between ranks", "pattern")
    overlap = section.boolean("overlap", False)
    share = max(share, 0.0)
    return Transfer(ends[0], ends[1], pattern, size, overlap, share, fixed)


def _end(section: Section, key: str, names: list[str]) -> str:
    name = section.text(key)
    # A role without a name may be the one that is meant.
    if name and all(names) and name not in names:
        hint = closest(name, names) or f"known: {', '.join(names)}"
        section.problem(f'there is no role "{name}"', key, hint)
    return name


def _size(
    section: Section,
    pattern: str,
    roles: Mapping[str, Role],
    ends: list[str],
    cycle: float,
) -> float:
    """Bytes in a cycle; when serving a cycle is one second."""
    every = section.number("every", 1.0, minimum=1e-9, maximum=1e9)
    if not any(section.has(key) for key in _SERVING):
        return section.quantity("bytes", parse_bytes) * cycle / every
    for key in ("bytes", "every"):
        if section.has(key):
            section.problem("contradicts tokens_per_s", key, "remove one of the two")
    size = section.quantity("bytes_per_token", parse_bytes)
    size *= section.number("tokens_per_s", maximum=1e15)
    if pattern in ("reshard", "broadcast"):
        message = "tokens go to one instance each, not to all"
        section.problem(message, "pattern", "set paired or all_to_all")
    sender, receiver = (roles.get(end) for end in ends)
    if pattern == "paired" and sender is not None and receiver is not None:
        size /= len(pairs_of(pattern, sender.instances, receiver.instances))
    return size


def _expert_share(
    section: Section, pattern: str, sender: Role, receiver: Role
) -> float:
    """Share of a model's parameters that are experts', where either side cuts them."""
    both = sender.job, receiver.job
    cuts = [job for job in both if job.parallelism.divides_experts]
    if not cuts or pattern not in ("reshard", "paired"):
        return 0.0
    model = next((job.model for job in both if job.model is not None), None)
    if model is None:
        message = "is missing: ep cuts the experts, and no role has a model"
        hint = "say which share of the bytes are experts, such as 0.95"
        section.problem(message, "expert_share", hint)
        return 0.0
    experts = model.moe_layers * model.experts * expert_parameters(model)
    return experts / total_parameters(model)
