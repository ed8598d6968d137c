"""Traces of all ranks as what a step sends: flows between ranks, and groups.

Messages, and exchanges whose shares are said, are flows. Other collectives are groups:
the calls of one process group are as many calls of their mean size. Nothing else is
left out but what is named.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from placer.base.errors import InputError, Problem, refuse
from placer.job.traffic import Group

if TYPE_CHECKING:
    from placer.job.kineto import Call, Trace

# PyTorch's names of calls (c10d, ProcessGroupNCCL.cpp), by the collective they run.
_COLLECTIVES = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce",
    "all_gather": "all_gather",
    "_allgather_base": "all_gather",
    "allgather_into_tensor_coalesced": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "_reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "all_to_all": "all_to_all",
    "all_to_allv": "all_to_all",
}
# These send nothing, or what the sender's own trace has.
_SILENT = ("wait", "init", "barrier", "recv")

Flow = tuple[int, int, float]


class Traced(NamedTuple):
    """What a step sends: flows (from, to, bytes), and groups."""

    flows: list[Flow]
    groups: tuple[Group, ...]


class _Key(NamedTuple):
    """The calls of one collective in one process group."""

    collective: str
    description: str
    ranks: tuple[int, ...]


@dataclass
class _Totals:
    """Of all traces: calls of each member, and bytes of all."""

    calls: Counter[int] = field(default_factory=Counter)
    size_bytes: int = 0


def traced(
    traces: Sequence[Trace],
    world_size: int,
    steps: int,
    without: Collection[str],
    taken: Collection[str],
    *,
    overlap: bool,
) -> Traced:
    """What a step sends by the traces of all ranks.

    ``steps`` of 0 counts those that the traces mark. Calls whose names are in
    ``without`` are left out, names in ``taken`` are no names of groups.
    """
    _check_ranks(traces, world_size)
    traces = sorted(traces, key=lambda trace: trace.rank)  # whatever files are called
    source = traces[0].source
    steps = steps or _steps(traces)
    flows: defaultdict[tuple[int, int], float] = defaultdict(float)
    totals: defaultdict[_Key, _Totals] = defaultdict(_Totals)
    uncounted: Counter[str] = Counter()
    seen: set[str] = set()
    for trace in traces:
        for call, count in trace.calls.items():
            seen.add(call.name)
            if call.name in without or call.name in _SILENT or len(call.group) == 1:
                continue
            if call.name != "send" and call.name not in _COLLECTIVES:
                uncounted[call.name] += count
                continue
            _check(call, trace, world_size)
            sent = _messages(call, trace.rank)
            if sent is not None:
                for pair, size in sent.items():
                    flows[pair] += size * count
                continue
            key = _Key(_COLLECTIVES[call.name], call.description, call.group)
            totals[key].calls[trace.rank] += count
            totals[key].size_bytes += max(call.taken, call.given) * count
    refuse(_left(uncounted, seen, without, source))
    refuse(_uneven(totals, source))
    return Traced(
        [(*pair, size / steps) for pair, size in flows.items()],
        tuple(_groups(totals, steps, {*taken}, overlap=overlap)),
    )


def _check_ranks(traces: Sequence[Trace], world_size: int) -> None:
    """One trace for each rank."""
    problems = [
        Problem(
            f"it is of a run of {trace.world_size} ranks, the job has {world_size}",
            trace.source,
        )
        for trace in traces
        if trace.world_size != world_size
    ]
    count = Counter(trace.rank for trace in traces)
    double = [trace for trace in traces if count[trace.rank] > 1]
    problems += [
        Problem(f"is not the only trace of rank {trace.rank}", trace.source)
        for trace in double
    ]
    refuse(problems)
    missing = [rank for rank in range(world_size) if rank not in count]
    if missing:
        shown = ", ".join(map(str, missing[:8])) + (", ..." if missing[8:] else "")
        message = f"{len(missing)} of {world_size} ranks have no trace: {shown}"
        hint = "name the folder that has one of each rank, or a pattern: traces/*.json"
        raise InputError(message, traces[0].source, hint=hint)


def _steps(traces: Sequence[Trace]) -> int:
    """How many steps each trace marks."""
    first = traces[0]
    other = next((each for each in traces if each.steps != first.steps), None)
    hint = "say how many steps each trace holds: traffic: {steps: N}"
    if other is not None:
        message = f"marks {other.steps} steps, {first.source} {first.steps}"
        raise InputError(message, other.source, hint=hint)
    if not first.steps:
        message = "marks no step: the profiler's step() was not called"
        raise InputError(message, first.source, hint=hint)
    return first.steps


def _check(call: Call, trace: Trace, world_size: int) -> None:
    """Whether the trace says all that is needed of a call."""
    message = ""
    if call.name == "send":
        if not 0 <= call.peer < world_size:
            message = "does not say to which rank: there is no Dst Rank"
    elif not call.group:
        message = "does not say all ranks of its process group"
    elif trace.rank not in call.group or not {*call.group} <= {*range(world_size)}:
        message = "has a process group that its rank, or a rank of the job, is not in"
    elif _COLLECTIVES[call.name] in ("all_gather", "reduce_scatter"):
        small, large = sorted((call.taken, call.given))
        if small * len(call.group) != large:
            message = f"is of {small} and {large} bytes on {len(call.group)} ranks"
    elif call.shares is None or len(call.shares) not in (0, len(call.group)):
        message = "does not say how much goes to each rank: its split sizes are cut"
    if message:
        hint = f"leave it out: traffic: {{without: [{call.name}]}}"
        message = f"a call of {call.name} {message}"
        raise InputError(message, trace.source, hint=hint)


def _messages(call: Call, rank: int) -> dict[tuple[int, int], float] | None:
    """Bytes to each rank of a call that names them; None for other collectives."""
    if call.name == "send":
        return {(rank, call.peer): max(call.taken, call.given)}
    shares = call.shares or ()
    if call.name == "all_to_allv" and not shares:  # its rank alone sends equal parts
        shares = (1,) * len(call.group)
    if _COLLECTIVES[call.name] != "all_to_all" or not shares:
        return None
    whole = max(sum(shares), 1)
    return {
        (rank, peer): call.taken * share / whole
        for peer, share in zip(call.group, shares, strict=True)
    }


def _left(
    uncounted: Counter[str], seen: set[str], without: Collection[str], source: str
) -> Iterator[Problem]:
    """What is neither counted nor left out, and what is left out but is not there."""
    if uncounted:
        kinds = ", ".join(f"{count} of {name}" for name, count in uncounted.items())
        message = f"calls of these kinds cannot be counted: {kinds} in all traces"
        hint = f"leave them out: traffic: {{without: [{', '.join(uncounted)}]}}"
        yield Problem(message, source, hint=hint)
    for name in without:
        if name not in seen:
            hint = f"there are: {', '.join(sorted(seen)) or 'none'}"
            yield Problem(f"has no calls of {name}", source, key="without", hint=hint)


def _uneven(totals: dict[_Key, _Totals], source: str) -> Iterator[Problem]:
    """Process groups whose members call a collective more often than others."""
    for key, total in totals.items():
        counts = {rank: total.calls[rank] for rank in key.ranks}
        few = min(counts, key=counts.__getitem__)
        many = max(counts, key=counts.__getitem__)
        if counts[few] != counts[many]:
            message = (
                f"rank {few} calls {key.collective} of process group "
                f'"{key.description}" {counts[few]} times, rank {many} {counts[many]}'
            )
            hint = "trace the same steps on every rank"
            yield Problem(message, source, hint=hint)


def _groups(
    totals: dict[_Key, _Totals], steps: int, taken: set[str], *, overlap: bool
) -> Iterator[Group]:
    """Process groups that do the same side by side are members of one group."""
    alike: defaultdict[tuple[str, str, float, float], list[tuple[int, ...]]]
    alike = defaultdict(list)
    for (collective, description, ranks), total in totals.items():
        runs = total.calls.total()
        if total.size_bytes:
            size, often = total.size_bytes / runs, runs / len(ranks) / steps
            alike[collective, description, size, often].append(ranks)
    for (collective, description, size, often), found in alike.items():
        for rows in _apart(found):
            yield Group(
                name=_name(description, collective, taken),
                collective=collective,
                size_bytes=size,
                per_step=often,
                overlap=overlap,
                ranks=tuple(sorted(rows)),
            )


def _apart(found: Iterable[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """The process groups in as few lists as they come, no rank twice in one."""
    lists: list[list[tuple[int, ...]]] = []
    members: list[set[int]] = []
    for ranks in found:
        for rows, inside in zip(lists, members, strict=True):
            if inside.isdisjoint(ranks):
                rows.append(ranks)
                inside.update(ranks)
                break
        else:
            lists.append([ranks])
            members.append({*ranks})
    return lists


def _name(description: str, collective: str, taken: set[str]) -> str:
    """A name for the score that no other group has; it joins ``taken``."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{description}.{collective}")
    plain = re.sub(r"^[^A-Za-z]+", "", plain)[:56]
    name, count = plain, 1
    while name in taken:
        count += 1
        name = f"{plain}-{count}"
    taken.add(name)
    return name
