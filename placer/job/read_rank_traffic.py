"""The ``traffic`` of a job: bytes between ranks, inline or from files of its own."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from placer.base.arrays import FloatArray, IntArray
from placer.base.errors import MOST_PROBLEMS, InputError, Problem, refuse
from placer.base.units import parse_bytes
from placer.documents import Section
from placer.documents.files import decode, decompressed, files_beside, read_bytes
from placer.job.axes import MAX_WORLD_SIZE
from placer.job.kineto import read_trace
from placer.job.traced import Traced, traced
from placer.job.traffic import Flows, Group, RankFlows, RankTraffic

KEYS = ("from", "to", "bytes")
MAX_FLOWS = 1 << 22
# Of the arrays of an npz file, unpacked, and of all flows together.
MAX_UNPACKED = 1 << 32
MAX_SIZE = 1e18

_HEADER = "from,to,bytes"
_SHAPE = f"write lines of {_HEADER}"


def decode_rank_traffic(
    job: Section, world_size: int, groups: tuple[Group, ...]
) -> tuple[RankTraffic | None, tuple[Group, ...]]:
    """What ranks send each other besides, and all groups, with those of traces.

    Problems go to the job's document. Flows of the same two ranks are added up; those
    of no bytes, and of a rank to itself, are left out. A ``world_size`` of 0 means that
    it is unknown.
    """
    if not job.has("traffic"):
        return None, groups
    section = job.section("traffic")
    limit = world_size or MAX_WORLD_SIZE
    overlap = Flows.overlap.take(section)
    if any(group.name == "traffic" for group in groups):
        section.problem("there is a group of this name", hint="rename the group")
    more: tuple[Group, ...] = ()
    if section.has("file"):
        columns, more = _of_files(job, section, world_size, groups)
    else:
        _refuse_of_traces(section)
        columns = _inline(section, limit)
    if section.document.problems:
        return None, groups
    flows = columns.merged()
    if len(flows[0]):
        return RankTraffic(*flows, overlap), groups + more
    if not more:
        section.problem("no rank sends another anything")
    return None, groups + more


def _of_files(
    job: Section, section: Section, world_size: int, groups: tuple[Group, ...]
) -> tuple[RankFlows, tuple[Group, ...]]:
    """Flows of the file that is named, or those of traces with their groups."""
    for key in KEYS:
        if section.has(key):
            section.problem("contradicts file", key, "remove one of the two")
    source = section.document.source
    paths = files_beside(source, Flows.file.take(section), (".json", ".json.gz"))
    if not paths:
        section.problem("there is no such file", "file")
    if section.document.problems:
        return RankFlows.of([], [], []), ()
    first = _content(paths[0])
    if first.lstrip()[:1] == b"{" or paths[0].endswith(".et") or len(paths) > 1:
        contents = chain([first], map(_content, paths[1:]))
        files = zip(contents, paths, strict=True)
        flows, more = _of_traces(job, section, files, world_size, groups)
        columns = RankFlows.of(*(zip(*flows, strict=True) if flows else [()] * 3))
        _check_arrays(columns, paths[0], world_size)
        return columns, more
    _refuse_of_traces(section)
    return _read_file(first, paths[0], world_size or MAX_WORLD_SIZE), ()


def _of_traces(
    job: Section,
    section: Section,
    files: Iterable[tuple[bytes, str]],
    world_size: int,
    groups: tuple[Group, ...],
) -> Traced:
    """What traces of a run, one for each rank, say of a step."""
    steps, without = Flows.steps.take(section), Flows.without.take(section)
    overlap = Flows.overlap.take(section)
    if job.has("model"):
        message = "traces hold what the model sends too: it would count twice"
        section.problem(message, "file", "remove model")
    if not world_size:
        section.problem("traces need parallelism beside them", "file")
    if section.document.problems:
        return Traced([], ())
    read = [read_trace(data, source) for data, source in files]
    taken = {group.name for group in groups}
    return traced(read, world_size, steps, without, taken, overlap=overlap)


def _refuse_of_traces(section: Section) -> None:
    """Say that keys of traces have no meaning for other flows."""
    for key in ("steps", "without"):
        if section.has(key):
            section.problem("belongs to traces, and there are none", key, "remove it")


def _content(path: str) -> bytes:
    """The bytes of a file that may be compressed."""
    return decompressed(read_bytes(path), path)


def _inline(section: Section, world_size: int) -> RankFlows:
    """The three lists of the job file itself, or of the inputs in a plan."""
    lists: list[list[Any]] = []
    for key in KEYS:
        value = section.get(key, required=True)
        if value is None:
            lists.append([])
        elif key == "bytes":
            plain = value.kind == "list" and {*map(type, value.content)} <= {int, float}
            lists.append(
                value.content
                if plain
                else [item.quantity(parse_bytes) for item in value.items()]
            )
        else:
            lists.append(value.integers(maximum=world_size - 1))
    if section.document.problems:
        return RankFlows.of([], [], [])
    if len({*map(len, lists)}) > 1:
        section.problem("from, to and bytes differ in length")
        return RankFlows.of([], [], [])
    columns = RankFlows.of(*lists)
    bad = _bad_sizes(columns[2])
    if len(bad):
        section.problem(f"entry {bad[0]} is not from 0 to {MAX_SIZE:g}", "bytes")
    return columns


def _bad_sizes(sizes: FloatArray) -> IntArray:
    """Indices of sizes that are negative, too large or no number."""
    return np.flatnonzero(~((sizes >= 0) & (sizes <= MAX_SIZE)))


def _read_file(data: bytes, source: str, world_size: int) -> RankFlows:
    """Flows of a CSV or npz file."""
    if data.startswith(b"PK"):
        columns = _of_npz(data, source)
        _check_arrays(columns, source, world_size)
        return columns
    text = decode(data, source)
    plain = _of_plain_csv(text)
    if plain is None or _array_problems(plain, world_size):
        return _of_csv(text, source, world_size)
    return plain


def _of_plain_csv(text: str) -> RankFlows | None:
    """Flows of a CSV text of plain numbers; None where it is anything else."""
    start = len(_HEADER) + 1 if text.startswith(f"{_HEADER}\n") else 0
    kinds = [("from", np.int64), ("to", np.int64), ("bytes", np.float64)]
    if "#" in text or not text[start:].strip():
        return None
    try:
        table = np.loadtxt(
            io.StringIO(text[start:]), dtype=kinds, delimiter=",", ndmin=1
        )
    except ValueError:
        return None
    return RankFlows(table["from"], table["to"], table["bytes"])


def _of_csv(text: str, source: str, world_size: int) -> RankFlows:
    """Flows of any CSV text, line by line."""
    rows: list[tuple[int, int, float]] = []
    problems: list[Problem] = []
    for line, content in enumerate(text.split("\n"), start=1):
        fields = content.split(",")
        stripped = [field.strip() for field in fields]
        if not content.strip() or (line == 1 and ",".join(stripped) == _HEADER):
            continue
        if len(fields) != len(KEYS):
            message = f"expected {_HEADER}, got {len(fields)} fields"
            problems.append(Problem(message, source, line, 1, hint=_SHAPE))
        else:
            row: list[Any] = []
            column = 1
            for key, field, value in zip(KEYS, fields, stripped, strict=True):
                try:
                    row.append(_number(key, value, world_size))
                except ValueError as error:
                    at = column + len(field) - len(field.lstrip())
                    problems.append(Problem(str(error), source, line, at, key))
                column += len(field) + 1
            rows.append(tuple(row))
        if len(problems) >= MOST_PROBLEMS:
            break
    refuse(problems)
    if not rows:
        raise InputError("there are no flows in it", source, hint=_SHAPE)
    return RankFlows.of(*zip(*rows, strict=True))


def _number(key: str, text: str, world_size: int) -> int | float:
    """A field of a CSV line.

    Raises `ValueError` saying what is wrong with it.
    """
    if key == "bytes":
        size = parse_bytes(text)
        if not 0 <= size <= MAX_SIZE:
            raise ValueError(f"{text} is not from 0 to {MAX_SIZE:g}")
        return size
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise ValueError(f'expected a rank, got "{text[:40]}"')
    if int(text) >= world_size:
        raise ValueError(f"rank {text} is not below the job's {world_size} ranks")
    return int(text)


def _of_npz(data: bytes, source: str) -> RankFlows:
    """Flows of an npz file: a matrix, or arrays ``from``, ``to`` and ``bytes``."""
    hint = "save one matrix, [from, to], or arrays called from, to and bytes"
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            unpacked = sum(item.file_size for item in packed.infolist())
        if unpacked > MAX_UNPACKED:
            raise ValueError(f"more than {MAX_UNPACKED >> 30} GiB unpacked")
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        message = f"cannot be read as npz: {error}"
        raise InputError(message, source, hint=hint) from None
    numbers = all(array.dtype.kind in "iuf" for array in arrays.values())
    if numbers and len(arrays) == 1:
        (matrix,) = arrays.values()
        if matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]:
            senders, receivers = np.nonzero(matrix)
            return RankFlows.of(senders, receivers, matrix[senders, receivers])
    if numbers and {*arrays} == {*KEYS}:
        ranks = all(arrays[key].dtype.kind in "iu" for key in KEYS[:2])
        shapes = {arrays[key].shape for key in KEYS}
        if ranks and len(shapes) == 1 and arrays["bytes"].ndim == 1:
            return RankFlows.of(*(arrays[key] for key in KEYS))
    message = f"holds neither a square matrix nor the arrays {', '.join(KEYS)}"
    raise InputError(message, source, hint=hint)


def _array_problems(columns: RankFlows, world_size: int) -> list[tuple[str, str]]:
    """(key, problem) of the first entry of each column that is wrong."""
    found = []
    for key, ranks in zip(KEYS, columns[:2], strict=False):
        bad = np.flatnonzero((ranks < 0) | (ranks >= world_size))
        if len(bad):
            message = (
                f"entry {bad[0]}: rank {ranks[bad[0]]} is not below the job's "
                f"{world_size} ranks"
            )
            found.append((key, message))
    bad = _bad_sizes(columns[2])
    if len(bad):
        message = f"entry {bad[0]} is not from 0 to {MAX_SIZE:g}"
        found.append((KEYS[2], message))
    if len(columns[0]) > MAX_FLOWS:
        found.append((KEYS[0], f"more than {MAX_FLOWS} flows"))
    return found


def _check_arrays(columns: RankFlows, source: str, world_size: int) -> None:
    problems = _array_problems(columns, world_size)
    refuse([Problem(message, source, key=key) for key, message in problems])
