"""What one rank of a job sends, from the trace that ``torch.profiler`` writes of it.

PyTorch notes each call of a process group as an operation ``record_param_comms``, with
the call's name, its process group, elements and their type (pytorch/pytorch,
``torch/csrc/distributed/c10d/ParamCommsUtils.hpp`` and
``torch/csrc/profiler/util.cpp``, ``saveNcclMeta``); libkineto repeats these on the
kernel that a call launches. A trace that holds calls without them is refused.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from placer.base.errors import InputError
from placer.documents.files import decode

_NO_TRACE = "is no trace of torch.profiler"
# Other records of a run that people call its trace: what they lack, what to give.
_EXECUTION_TRACE = (
    "is an execution trace (Chakra): it does not say to whom a rank sends",
    "give the traces of torch.profiler (Kineto) of the same run",
)
_STEP = re.compile(r"ProfilerStep#\d+")
# Bytes of an element; the names are those of c10::ScalarType.
_ELEMENT_BYTES = {
    **dict.fromkeys(("Byte", "Char", "Bool", "Bits8"), 1),
    **dict.fromkeys(("Short", "Half", "BFloat16", "UInt16", "Bits16"), 2),
    **dict.fromkeys(("Int", "Float", "UInt32", "ComplexHalf"), 4),
    **dict.fromkeys(("Long", "Double", "UInt64", "ComplexFloat"), 8),
    "ComplexDouble": 16,
}


class Call(NamedTuple):
    """One call of a process group."""

    name: str  # as PyTorch calls it: ``allreduce``, ``_allgather_base``, ``send``
    group: tuple[int, ...]  # global ranks of the process group
    description: str  # of the process group; may be empty
    # taken and given, bytes: what the call takes of this rank, and gives back to it.
    taken: int
    given: int
    # Of an exchange, how much goes to each member, in any unit; empty where all get as
    # much, None where the trace cuts the list short.
    shares: tuple[int, ...] | None
    peer: int  # to which rank a message goes; -1 where none is said


class Trace(NamedTuple):
    """The calls of one rank."""

    source: str
    rank: int
    world_size: int
    steps: int  # that are marked; 0 where none is
    calls: Counter[Call]  # how often there is one like it


def read_trace(data: bytes, source: str) -> Trace:
    """The trace of one rank."""
    if source.endswith(".et"):  # Chakra's protocol buffers
        raise _error(source, *_EXECUTION_TRACE)
    content = _json(decode(data, source), source)
    events, info = content.get("traceEvents"), content.get("distributedInfo")
    if not isinstance(events, list):
        chakra = isinstance(content.get("nodes"), list)
        message, hint = _EXECUTION_TRACE if chakra else (_NO_TRACE, "")
        raise _error(source, message, hint)
    if not isinstance(info, dict):
        hint = "it is written where torch.distributed is set up before the profiler"
        raise _error(source, "says no rank: it has no distributedInfo", hint)
    rank, world_size = _whole(info, "rank"), _whole(info, "world_size")
    if not 0 <= rank < world_size:
        raise _error(source, "its distributedInfo has no rank below its world_size")
    known = _known_groups(info, world_size)
    operations = [
        event
        for event in events
        if isinstance(event, dict) and isinstance(event.get("args", {}), dict)
    ]
    recorded = _recorded(operations)
    unsaid = _unsaid(operations, any_said=bool(recorded))
    if unsaid:
        message = f"does not say what {sum(unsaid.values())} of its calls send: "
        shown = ", ".join(f"{count} {name}" for name, count in unsaid.most_common(3))
        hint = "trace a run over NCCL with a newer PyTorch, and without CUDA graphs"
        raise _error(source, message + shown, hint)
    return Trace(
        source,
        rank,
        world_size,
        len({*filter(None, map(_step, operations))}),
        Counter(_call(args, known, source) for args in recorded),
    )


def _json(text: str, source: str) -> dict[str, Any]:
    try:
        content = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        message = f"{_NO_TRACE}: {error.msg}"
        raise InputError(message, source, error.lineno, error.colno) from None
    except (ValueError, RecursionError):
        raise _error(source, _NO_TRACE) from None
    if not isinstance(content, dict):
        raise _error(source, _NO_TRACE)
    return content


def _step(event: Mapping[str, Any]) -> str:
    """The name of the step that an event marks on the host; empty for others."""
    name = str(event.get("name"))
    marks = event.get("cat") == "user_annotation" and _STEP.fullmatch(name)
    return name if marks else ""


def _recorded(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is said of each call: on the host, or else on the kernels."""
    found: dict[str, list[dict[str, Any]]] = {"cpu_op": [], "kernel": []}
    for event in events:
        args, kind = event.get("args", {}), str(event.get("cat"))
        if kind in found and "Collective name" in args:
            found[kind].append(args)
    return found["cpu_op"] or found["kernel"]


def _unsaid(events: list[dict[str, Any]], *, any_said: bool) -> Counter[str]:
    """Names of what sends something and does not say what, and how often each is there.

    Kernels that replay a CUDA graph have the number of its launch, and no call on the
    host. Where some calls are said, kernels and wrappers around them need not say more.
    """
    found: Counter[str] = Counter()
    launched = {
        _whole(event.get("args", {}), "correlation")
        for event in events
        if str(event.get("name")).startswith("cudaGraphLaunch")
    }
    for event in events:
        args, name = event.get("args", {}), str(event.get("name"))
        kernel = event.get("cat") == "kernel" and name.startswith("nccl")
        replayed = kernel and _whole(args, "correlation") in launched
        silent = kernel or name.startswith(("c10d::", "gloo:", "nccl:"))
        if "Collective name" in args:
            continue
        if name == "record_param_comms" or replayed or (silent and not any_said):
            found[name.partition("(")[0]] += 1
    return found


def _known_groups(
    info: Mapping[str, Any], world_size: int
) -> dict[str, tuple[int, ...]]:
    """Ranks of each process group by its name; an empty list means all ranks."""
    found = {}
    rows = info.get("pg_config")
    for row in rows if isinstance(rows, list) else []:
        ranks = row.get("ranks") if isinstance(row, dict) else None
        if isinstance(ranks, list) and all(isinstance(rank, int) for rank in ranks):
            found[str(row.get("pg_name"))] = tuple(ranks) or tuple(range(world_size))
    return found


def _call(
    args: Mapping[str, Any], known: Mapping[str, tuple[int, ...]], source: str
) -> Call:
    name = str(args["Collective name"])
    size = _whole(args, "Group size")
    ranks = _integers(args.get("Process Group Ranks", ""))
    if not ranks or len(ranks) != size:
        ranks = known.get(str(args.get("Process Group Name")), ())
    elements = _whole(args, "In msg nelems"), _whole(args, "Out msg nelems")
    kind = str(args.get("dtype", ""))
    element = 1 if kind.startswith("Float8") else _ELEMENT_BYTES.get(kind, 0)
    if min(elements) < 0 or (max(elements) and not element):
        raise _error(source, f'elements of {name} are not said, or "{kind}" is no type')
    return Call(
        name,
        ranks if len(ranks) == size else (),
        str(args.get("Process Group Description", "")),
        elements[0] * element,
        elements[1] * element,
        _integers(args.get("In split size", "[]")),
        _whole(args, "Dst Rank"),
    )


def _whole(values: Mapping[str, Any], key: str) -> int:
    """A number that is 0 or more; -1 where it is none."""
    text = str(values.get(key))
    return int(text) if re.fullmatch(r"\d{1,15}", text, re.ASCII) else -1


def _integers(text: object) -> tuple[int, ...] | None:
    """Numbers of a list such as ``[0, 1]``; None where ``...`` stands for some."""
    if isinstance(text, str) and not re.search(r"[^\d\s,\[\]\"]", text, re.ASCII):
        return tuple(map(int, re.findall(r"\d{1,15}", text, re.ASCII)))
    return None


def _error(source: str, message: str, hint: str = "") -> InputError:
    return InputError(message, source, hint=hint)
