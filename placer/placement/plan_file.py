"""Plan files: JSON in, JSON out, all or nothing."""

from __future__ import annotations

import json
import math
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from placer.base.arguments import PATH, takes
from placer.base.errors import InputError, Problem
from placer.documents import files
from placer.placement.plan_decode import decode_plan
from placer.placement.plan_encode import encode_plan
from placer.placement.plan_like import PLAN, plan_of

if TYPE_CHECKING:
    from placer.placement.plan import Plan
    from placer.placement.plan_like import PlanLike


@takes(source=PATH)
def read_plan(source: str | PathLike[str]) -> Plan:
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
    name = fspath(source)
    shown = files.shown_name(name)
    text = files.decode(files.decompressed(files.read_bytes(name), name), name)
    return decode_plan(_parse(text, shown), shown)


@takes(plan=PLAN, path=PATH)
def write_plan(plan: PlanLike, path: str | PathLike[str]) -> None:
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
    files.write_compressed(fspath(path), encode_plan(plan_of(plan)))


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
        hint = "a plan is what placer place -o PLAN writes"
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
