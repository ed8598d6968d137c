"""Reading a job file, which may be a workload: roles, and transfers between them.

Each role is a job of its own, and a workload becomes one `Job`. Its ranks are those of
all roles, one role after the other and one instance after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placer.base.arguments import takes
from placer.base.errors import InputError
from placer.documents import Document, Section, Value, known_hint, open_document
from placer.documents.files import beside, is_file
from placer.documents.presets import find_file
from placer.documents.records import read, values
from placer.job.axes import AXES, EXPERT_AXES, Parallelism
from placer.job.decode import decode_one, job_digest
from placer.job.model import Job
from placer.job.models import expert_parameters, total_parameters
from placer.job.resize import with_gpus
from placer.job.roles import MAX_RANKS, Role, Transfer, Workload
from placer.job.rules import decode_rules
from placer.job.shards import merged, pairs_of, transfer_flows
from placer.job.started import RANKS_HINT, Started

if TYPE_CHECKING:
    import os

FORMAT = "placer/workload"
# Of all transfers together, before those of the same two ranks are added up.
MAX_FLOWS = 1 << 22

_SERVING = ("bytes_per_token", "tokens_per_s")


@takes()
def read_job(source: str | os.PathLike[str]) -> Job:
    """Job of a file, of ``-`` (standard input) or of a preset."""
    name = source if isinstance(source, str) else str(Path(source).absolute())
    return decode_job(open_document(find_file("jobs", name)))


def decode_job(document: Document) -> Job:
    """Job of a parsed document, which may be a workload."""
    if document.top.name("format") == FORMAT:
        job = _decode_workload(document)
        return replace(job, sha256=job_digest(job))
    return decode_one(document)


def _decode_workload(document: Document) -> Job:
    """The job of a workload, without its digest."""
    document.check_format(FORMAT)
    root = document.root
    transfers_of = [value.section() for value in root.items("transfers", required=True)]
    cycle = _cycle(transfers_of)
    sections = [value.section() for value in root.items("roles", required=True)]
    names = _names(sections)
    roles = _roles(sections, names, cycle)
    by_name = {role.name: role for role in roles}
    transfers = [_transfer(section, names, by_name, cycle) for section in transfers_of]
    world = sum(role.world_size for role in roles)
    said = values(
        root,
        Workload,
        roles=tuple(roles),
        transfers=tuple(transfers),
        launcher=Started.ranks.take(root.section("launcher", hint=RANKS_HINT)),
        rules=decode_rules(root.section("rules"), world),
    )
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
    require = {
        f"{role.name}.{axis}": tier
        for role in roles
        for axis, tier in role.job.require.items()
    }
    axes = Parallelism(dp=world)
    return Job(**said, parallelism=axes, require=require, traffic=traffic)


def _cycle(transfers: list[Section]) -> float:
    """Steps of a cycle: those between two of the rarest transfers; 1 when serving."""
    return max((Transfer.every.take(section) for section in transfers), default=1.0)


def _names(sections: list[Section]) -> list[str]:
    """The names of all roles, of those whose job cannot be read as well."""
    names: list[str] = []
    for section in sections:
        name = section.text("name")
        if name and name in names:
            section.problem(f'there is another role called "{name}"', "name")
        names.append(name)
    return names


def _roles(sections: list[Section], names: list[str], cycle: float) -> list[Role]:
    """The roles whose job can be read."""
    roles: list[Role] = []
    for section, name in zip(sections, names, strict=True):
        job = _job_of_role(section, name)
        first = sum(role.world_size for role in roles)
        role = read(section, Role, {"steps": cycle}, job=job, first_rank=first)
        if job is not None:
            roles.append(role)
    return roles


def _job_of_role(section: Section, name: str) -> Job | None:
    """The job of one instance, at the size and under the requirements of the role."""
    value = section.get("job", required=True)
    gpus, require = Role.gpus.take(section), Role.require.take(section)
    if value is None:
        return None
    document = section.document
    try:
        job = with_gpus(_read_job(value, name), gpus)
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
            hint = known_hint(axis, known)
            message = "there is no such axis or group"
            section.section("require").problem(message, axis, hint)
    return replace(job, require={**job.require, **require})


def _read_job(value: Value, name: str) -> Job:
    """A job that is named (a file beside, or a preset) or written out."""
    document = value.document
    if value.kind == "mapping":
        start = {"format": "placer/job", "version": 1, "name": name or "role"}
        return decode_one(document.inner(value, start), alone=False)
    given = value.text()
    path = beside(document.source, given)
    if not is_file(path) and (preset := find_file("jobs", given)) != given:
        path = preset
    return decode_one(open_document(path), alone=False)


def _place(value: Value) -> Mapping[str, Any]:
    place = value.place
    return {"source": place.source, "line": place.line, "column": place.column}


def _transfer(
    section: Section, names: list[str], roles: Mapping[str, Role], cycle: float
) -> Transfer:
    ends = [_end(section, key, names) for key in ("from", "to")]
    if ends[0] and ends[0] == ends[1]:
        section.problem("is the role that sends", "to", "name another role")
    found = read(
        section, Transfer, {"expert_share": -1.0}, sender=ends[0], receiver=ends[1]
    )
    sender, receiver = (roles.get(end) for end in ends)
    share = found.expert_share
    if sender is not None and receiver is not None:
        if share < 0:
            share = _expert_share(section, found.pattern, sender, receiver)
        everyone = sender.world_size * receiver.world_size
        if found.pattern == "all_to_all" and everyone > MAX_FLOWS:
            section.problem(f"more than {MAX_FLOWS} flows between ranks", "pattern")
    every = Transfer.every.take(section)
    return replace(
        found,
        size_bytes=_size(section, found, sender, receiver, cycle, every),
        expert_share=max(share, 0.0),
        fixed_time=found.fixed_time * (cycle / every),
    )


def _end(section: Section, key: str, names: list[str]) -> str:
    name = section.text(key)
    # A role without a name may be the one that is meant.
    if name and all(names) and name not in names:
        section.problem(f'there is no role "{name}"', key, known_hint(name, names))
    return name


def _size(
    section: Section,
    found: Transfer,
    sender: Role | None,
    receiver: Role | None,
    cycle: float,
    every: float,
) -> float:
    """Bytes in a cycle; when serving a cycle is one second."""
    if not any(section.has(key) for key in _SERVING):
        section.get("bytes", required=True)
        # In this order: digests keep the last bit.
        return found.size_bytes * cycle / every
    for key in ("bytes", "every"):
        if section.has(key):
            section.problem("contradicts tokens_per_s", key, "remove one of the two")
    for key in _SERVING:
        section.get(key, required=True)
    size = Transfer.token_bytes.take(section) * Transfer.tokens_per_s.take(section)
    if found.pattern in ("reshard", "broadcast"):
        message = "tokens go to one instance each, not to all"
        section.problem(message, "pattern", "set paired or all_to_all")
    if found.pattern == "paired" and sender is not None and receiver is not None:
        size /= len(pairs_of(found.pattern, sender.instances, receiver.instances))
    return float(size)


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
