"""Plan files: JSON in, JSON out, all or nothing."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from placer.base.arguments import takes
from placer.base.errors import InputError, Problem
from placer.documents import files
from placer.documents.builder import MAX_DEPTH, TOO_DEEP, Path
from placer.documents.document import Document
from placer.documents.keys import REQUIRED, keys_of
from placer.documents.scalars import CONTROL, shown, visible
from placer.placement.plan import BOUND, Plan
from placer.placement.plan_consistency import require_consistent
from placer.placement.score import Score

FORMAT = "placer/plan"

_AXES = ("tp", "cp", "ep", "pp", "dp")
_HINT = "a plan is the JSON that placer place -o writes"
_INDICES = range(2**31)
_MAX_WHOLE = 2**63


class Planned(Protocol):
    """What has a plan, such as a `Result`."""

    @property
    def plan(self) -> Plan:
        """The plan."""


PlanLike = Plan | Planned | str | os.PathLike[str] | Mapping[str, Any]


def decode_plan(data: object, source: str) -> Plan:
    """The plan that ``data``, as parsed from JSON, describes.

    Raises `ContradictionError` if it is well formed, but its parts do not fit together.
    """
    document = Document(source, data)
    _harmless(document, data)
    document.fail_if_problems()
    _require_format(document)
    document.check_format(FORMAT)
    root = document.root
    found = {
        each.called: each.take(root, REQUIRED if each.required else None)
        for each in keys_of(Plan)
    }
    _check(document, found)
    document.fail_if_problems()
    given = {key: value for key, value in found.items() if value is not None}
    world_size, score = given.pop("world_size"), Score(found["score"] or {})
    plan = Plan(**{"domains": {}} | given | {"score": score})
    require_consistent(plan, world_size, source)
    return plan


def _require_format(document: Document) -> None:
    """Say of a file that is of another format that it is no plan."""
    whole = document.top
    told = whole.at("format")
    if whole.kind != "mapping":
        why = f"expected a mapping (key: value), got {whole.shown()}"
    elif told is None:
        why = 'the key "format" is missing'
    elif told.content != FORMAT:
        why = f'expected "{FORMAT}", got {told.shown()}'
    else:
        return
    (told or whole).problem(f"not a plan: {why}", _HINT)
    document.fail_if_problems()


def _harmless(
    document: Document, value: object, path: Path = (), depth: int = 0
) -> None:
    """Refuse what would spoil a terminal or overflow a stack or a float."""
    if isinstance(value, str):
        if CONTROL.search(value):
            document.problem(f'control character in "{visible(value)}"', path)
    elif depth > MAX_DEPTH:
        document.problem(TOO_DEEP, path)
    elif isinstance(value, dict):
        for name, item in value.items():
            _harmless(document, name, path, depth)
            _harmless(document, item, (*path, name), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if not (type(item) is int and item in _INDICES):  # there are many
                _harmless(document, item, (*path, index), depth + 1)
    elif isinstance(value, int) and abs(value) > _MAX_WHOLE:
        message = f"expected a number of 64 bits, got {shown(value)[:30]}..."
        document.problem(message, path)


def _check(document: Document, found: dict[str, Any]) -> None:
    """What the types of the keys do not say."""
    topology, job = found["topology"], found["job"]
    tiers, count = topology.get("tiers"), topology.get("scale_up", 0)
    if isinstance(tiers, list) and tiers and type(count) is int and count > len(tiers):
        document.problem(f"{count} of {len(tiers)} tiers", ("topology", "scale_up"))
    order = job.get("order")
    if isinstance(order, str) and sorted(order.split("-")) != sorted(_AXES):
        message = f'"{visible(order)}" does not name each of {" ".join(_AXES)} once'
        document.problem(message, ("job", "order"))
    bound = found["bound"] or {}
    for key in BOUND if bound else ():
        if bound.get(key) is None:
            document.problem("is missing", ("bound", key))


_WIDTH = 88


def encode_plan(plan: Plan) -> str:
    """JSON text of ``plan``, keys in the order of ``Plan.to_dict``.

    Raises `ValueError` if a number is not finite.
    """
    return json_text(plan.to_dict())


def json_text(data: Mapping[str, Any]) -> str:
    """JSON text of ``data``, keys in the order given, newline at the end.

    Floats are written as ``repr``: the shortest text that reads back the same.

    Raises `ValueError` if a number is not finite.
    """
    return _text(data, "") + "\n"


def _text(value: object, indent: str) -> str:
    """JSON of one value; lines after the first start with ``indent``."""
    deeper = indent + "  "
    if isinstance(value, Mapping):
        if not _holds_containers(value.values()):
            line = _scalar(dict(value))
            # Room for a key before it; a longer key only makes a longer line.
            if len(indent) + len(line) <= _WIDTH - 20:
                return line
        items = [f"{_scalar(k)}: {_text(v, deeper)}" for k, v in value.items()]
        return _block("{", items, "}", indent)
    if isinstance(value, list | tuple) and _holds_containers(value):
        return _block("[", [_text(item, deeper) for item in value], "]", indent)
    return _scalar(value)


def _block(start: str, items: list[str], end: str, indent: str) -> str:
    separator = f",\n{indent}  "
    return f"{start}\n{indent}  {separator.join(items)}\n{indent}{end}"


def _holds_containers(values: Iterable[object]) -> bool:
    """Whether any value is a mapping or a list; each type is looked at once."""
    kinds = {*map(type, values)}
    return any(issubclass(kind, Mapping | list | tuple) for kind in kinds)


def _plain(value: object) -> object:
    """A numpy number or array as Python's own."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in a plan")


_scalar = json.JSONEncoder(allow_nan=False, default=_plain).encode


@takes()
def read_plan(source: str | os.PathLike[str]) -> Plan:
    """The plan in a file, compressed or not, or on standard input for ``-``.

    Keys of this version that are not known are left out; a newer version is refused.

    Parameters
    ----------
    source : str or path

    Returns
    -------
    Plan

    Raises
    ------
    ContradictionError
        If the plan is well formed but contradicts itself, such as two ranks on one GPU.
    InputError
        If the file cannot be read, is not a plan or is malformed.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> placer.write_plan(plan, "plan.json")
    >>> placer.read_plan("plan.json").nodes
    ('n1', 'n2')
    """
    name = os.fspath(source)
    shown = files.shown_name(name)
    text = files.decode(files.decompressed(files.read_bytes(name), name), name)
    return decode_plan(_parse(text, shown), shown)


@takes()
def write_plan(plan: PlanLike, path: str | os.PathLike[str]) -> None:
    """Write a plan to ``path``, or to standard output for ``-``.

    A name that ends in ``.gz`` or ``.zst`` compresses it; zstd is an extra,
    ``placer[zstd]``, before Python 3.14. Equal plans give equal bytes.

    Parameters
    ----------
    plan : Plan, Result, path or dict
    path : str or path

    Raises
    ------
    InputError
        If an argument is of a wrong type.
    OutputError
        If it cannot be written; an existing file is kept.

    Examples
    --------
    >>> plan = placer.predict("dgx-h100-4x8", "quickstart", "slurm")
    >>> placer.write_plan(plan, "plan.json")
    """
    files.write_compressed(os.fspath(path), encode_plan(plan_of(plan)))


def _parse(text: str, source: str) -> object:
    """What the JSON says, without duplicate keys and numbers that are not finite."""
    try:
        return json.loads(
            text,
            object_pairs_hook=_mapping,
            parse_float=_finite,
            parse_constant=_finite,
        )
    except json.JSONDecodeError as error:
        short = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        hint = _HINT
        if short:
            hint = "the file ends too early; was it written to the end?"
        place = (error.lineno, error.colno)
        problem = Problem(f"not JSON: {error.msg}", source, *place, hint=hint)
    except RecursionError:
        problem = Problem("nested too deeply", source)
    except ValueError as error:
        problem = Problem(f"not JSON: {error}", source)
    raise InputError([problem])


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"duplicate key {key[:60]!r}")
        found[key] = value
    return found


def _finite(token: str) -> float:
    number = float(token)
    if not math.isfinite(number):
        raise ValueError(f"{token[:60]} is not a finite number")
    return number


def plan_of(value: PlanLike) -> Plan:
    """The plan that an argument of a library call means."""
    if isinstance(value, Plan):
        return value
    if isinstance(value, Mapping):
        return decode_plan(dict(value), "the plan")
    if isinstance(value, str | os.PathLike):
        return read_plan(value)
    return value.plan
